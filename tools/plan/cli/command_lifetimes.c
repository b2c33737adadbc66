/*
 * bfcplan lifetimes: computes the lifetimes of the tensors in a dataflow graph or a model for an
 * order of execution, or reads the lifetimes of buffers that a compiler has dumped.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "planner/problem/packing_arena.h"
#include "tools/plan/cli/arguments.h"
#include "tools/plan/cli/command.h"
#include "tools/plan/cli/import.h"
#include "tools/plan/cli/progress.h"
#include "tools/plan/common/whole_file.h"
#include "tools/plan/graph/graph.h"
#include "tools/plan/graph/schedule.h"
#include "tools/plan/io/csv.h"

static const struct order {
    const char *name;
    enum schedule_order order;
} orders[] = {
    {"given", ORDER_GIVEN}, {"dfs", ORDER_DFS}, {"bfs", ORDER_BFS}, {"min-peak", ORDER_MIN_PEAK}};

struct settings {
    const char *file;
    const char *output;
    const char *order_name;
    const char *dimensions;
    enum schedule_order order;
    double seconds;
    uint64_t seed;
    bool json;
};

static bool find_order(struct settings *s) {
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        if (strcmp(s->order_name, orders[i].name) == 0) {
            s->order = orders[i].order;
            return true;
        }
    }
    command_misuse("--order '%s' is unknown; accepted are given, dfs, bfs, min-peak",
                   s->order_name);
    return false;
}

/* Refuses options that would have no effect on this kind of file, and sets the default of
 * --order. */
static bool check_kind(struct settings *s) {
    const enum import_kind kind = import_kind_of(s->file);
    if (s->dimensions && kind != IMPORT_GRAPH) {
        command_misuse("--dims is for a MODEL.onnx: in '%s' every size is a number", s->file);
        return false;
    }
    if (s->order_name && kind == IMPORT_LIFETIMES) {
        command_misuse("--order is for graphs and models: '%s' is in the compiler's order",
                       s->file);
        return false;
    }
    if (!s->order_name)
        s->order_name = "given";
    return true;
}

static bool parse_settings(int argc, char **argv, struct settings *s) {
    *s = (struct settings){.seconds = 2, .seed = 1};
    const struct option options[] = {{"output", 'o', OPTION_TEXT, &s->output, 0, 0},
                                     {"order", 0, OPTION_TEXT, &s->order_name, 0, 0},
                                     {"dims", 0, OPTION_TEXT, &s->dimensions, 0, 0},
                                     {"time-limit", 0, OPTION_SECONDS, &s->seconds, 0, 0},
                                     {"seed", 0, OPTION_NUMBER, &s->seed, 0, UINT64_MAX},
                                     {"json", 0, OPTION_FLAG, &s->json, 0, 0}};
    if (!arguments_parse(argc, argv, options, sizeof options / sizeof *options, &s->file, 1,
                         "one GRAPH.json, MODEL.onnx or XLA dump (…-buffer-assignment.txt)"))
        return false;
    if (!s->output) {
        command_misuse("lifetimes needs -o OUT.csv");
        return false;
    }
    return check_kind(s) && find_order(s);
}

static bool read_graph(struct graph *graph, const struct settings *s, struct plan_error *error) {
    struct file_text text;
    const bool read = import_kind_of(s->file) == IMPORT_GRAPH
                          ? import_read(&text, s->file, s->dimensions, error)
                          : file_read(&text, s->file, error);
    if (!read)
        return false;
    const bool good = graph_parse(graph, &text, s->file, error);
    file_free(&text);
    return good;
}

static bool make_lifetimes(const struct settings *s, const struct graph *graph,
                           struct lifetimes *lifetimes, struct plan_error *error) {
    uint32_t *nodes = malloc(((size_t)graph->nodes_count + 1) * sizeof *nodes);
    if (!nodes)
        return plan_fail_memory(error);
    progress_timed(STAGE_ORDER, s->order == ORDER_MIN_PEAK ? s->seconds : 0);
    const bool good = schedule(graph, s->order, s->seconds, s->seed, nodes, error) &&
                      schedule_lifetimes(lifetimes, graph, nodes, error);
    free(nodes);
    return good;
}

/* Prints how many bytes are alive at most in this order of execution. That is the lower bound for
 * plans of the lifetimes if sizes are not rounded up (alignment 1). */
static bool report_lifetimes(const struct settings *s, const struct graph *graph,
                             const struct lifetimes *lifetimes, struct plan_error *error) {
    struct problem problem;
    if (!problem_build(&problem, lifetimes, 1, 0, error))
        return false;
    if (s->json)
        printf("{\"nodes\":%u,\"tensors\":%u,\"order\":\"%s\",\"peak\":%" PRIu64 "}\n",
               graph->nodes_count, graph->tensors_count, s->order_name, problem_bound(&problem));
    else
        printf("%u node%s, %u tensor%s; in order %s %" PRIu64 " bytes are alive at most\n",
               graph->nodes_count, bfc_plural(graph->nodes_count), graph->tensors_count,
               bfc_plural(graph->tensors_count), s->order_name, problem_bound(&problem));
    problem_free(&problem);
    return true;
}

static bool write_text(const struct file_text *text, const char *path, struct plan_error *error) {
    struct file_writer writer;
    if (!file_open(&writer, path, error))
        return false;
    fwrite(text->bytes, 1, text->size, writer.stream);
    return file_close(&writer, error);
}

static bool report_dump(const struct settings *s, const struct lifetimes *lifetimes,
                        struct plan_error *error) {
    struct problem problem;
    if (!problem_build(&problem, lifetimes, 1, 0, error))
        return false;
    if (s->json)
        printf("{\"buffers\":%u,\"peak\":%" PRIu64 "}\n", lifetimes->visible,
               problem_bound(&problem));
    else
        printf("%u buffer%s; in the compiler's order %" PRIu64 " bytes are alive at most\n",
               lifetimes->visible, bfc_plural(lifetimes->visible), problem_bound(&problem));
    problem_free(&problem);
    return true;
}

static bool import_dump(const struct settings *s, struct lifetimes *lifetimes,
                        struct plan_error *error) {
    struct file_text text;
    if (!import_read(&text, s->file, s->dimensions, error))
        return false;
    progress_stage(STAGE_WRITE, 0);
    const bool good =
        write_text(&text, s->output, error) && csv_parse(lifetimes, &text, s->file, error);
    if (!good)
        file_free(&text);
    return good;
}

static const enum stage stages[] = {STAGE_READ, STAGE_ORDER, STAGE_WRITE};
static const struct progress_way way = {stages, sizeof stages / sizeof *stages, false};
static const enum stage dump_stages[] = {STAGE_READ, STAGE_WRITE};
static const struct progress_way dump_way = {dump_stages, 2, false};

/* Reads a compiler's dump and writes its lifetimes. A dump consists of lifetimes, so no order of
 * execution must be chosen. */
static int take_dump(const struct settings *s) {
    struct lifetimes lifetimes;
    struct plan_error error;
    bool good = import_dump(s, &lifetimes, &error);
    progress_stop();
    if (!good)
        return command_fail(&error);
    good = report_dump(s, &lifetimes, &error);
    lifetimes_free(&lifetimes);
    return good ? EXIT_GOOD : command_fail(&error);
}

int command_lifetimes(int argc, char **argv) {
    struct settings settings;
    struct graph graph;
    struct lifetimes lifetimes;
    struct plan_error error;
    if (!parse_settings(argc, argv, &settings))
        return EXIT_USAGE;
    const bool is_dump = import_kind_of(settings.file) == IMPORT_LIFETIMES;
    progress_start(is_dump ? &dump_way : &way);
    if (!file_check_output(settings.output, &error)) {
        progress_stop();
        return command_fail(&error);
    }
    if (is_dump)
        return take_dump(&settings);
    if (!read_graph(&graph, &settings, &error)) {
        progress_stop();
        return command_fail(&error);
    }
    bool good = make_lifetimes(&settings, &graph, &lifetimes, &error);
    if (good) {
        progress_stage(STAGE_WRITE, 0);
        good = csv_write(&lifetimes, NULL, settings.output, &error);
        progress_stop();
        good = good && report_lifetimes(&settings, &graph, &lifetimes, &error);
        lifetimes_free(&lifetimes);
    }
    progress_stop();
    graph_free(&graph);
    return good ? EXIT_GOOD : command_fail(&error);
}
