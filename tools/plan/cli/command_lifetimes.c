/* bfcplan lifetimes: turns a dataflow graph into lifetimes, by an order of execution. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/problem/arena.h"
#include "tools/plan/cli/arguments.h"
#include "tools/plan/cli/command.h"
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

static bool parse(int argc, char **argv, struct settings *s) {
    *s = (struct settings){.order_name = "given", .seconds = 2, .seed = 1};
    const struct option options[] = {{"output", 'o', OPTION_TEXT, &s->output, 0, 0},
                                     {"order", 0, OPTION_TEXT, &s->order_name, 0, 0},
                                     {"time-limit", 0, OPTION_SECONDS, &s->seconds, 0, 0},
                                     {"seed", 0, OPTION_NUMBER, &s->seed, 0, UINT64_MAX},
                                     {"json", 0, OPTION_FLAG, &s->json, 0, 0}};
    if (!arguments_parse(argc, argv, options, sizeof options / sizeof *options, &s->file, 1,
                         "one GRAPH.json"))
        return false;
    if (!s->output) {
        command_misuse("lifetimes needs -o OUT.csv");
        return false;
    }
    return find_order(s);
}

static bool read_graph(struct graph *graph, const char *path, struct plan_error *error) {
    struct file_text text;
    if (!file_read(&text, path, error))
        return false;
    const bool good = graph_parse(graph, &text, path, error);
    file_free(&text);
    return good;
}

static bool make(const struct settings *s, const struct graph *graph, struct lifetimes *lifetimes,
                 struct plan_error *error) {
    uint32_t *nodes = malloc(((size_t)graph->nodes_count + 1) * sizeof *nodes);
    if (!nodes)
        return plan_fail_memory(error);
    const bool good = schedule(graph, s->order, s->seconds, s->seed, nodes, error) &&
                      schedule_lifetimes(lifetimes, graph, nodes, error);
    free(nodes);
    return good;
}

/* The lower bound of the lifetimes is the peak of the order, with sizes that are not rounded. */
static bool report(const struct settings *s, const struct graph *graph,
                   const struct lifetimes *lifetimes, struct plan_error *error) {
    struct problem problem;
    if (!problem_build(&problem, lifetimes, 1, 0, error))
        return false;
    printf(s->json ? "{\"nodes\":%u,\"tensors\":%u,\"order\":\"%s\",\"peak\":%" PRIu64 "}\n"
                   : "%u nodes, %u tensors; in order %s %" PRIu64 " bytes are alive at most\n",
           graph->nodes_count, graph->tensors_count, s->order_name, problem.arenas[0].bound);
    problem_free(&problem);
    return true;
}

int command_lifetimes(int argc, char **argv) {
    struct settings settings;
    struct graph graph;
    struct lifetimes lifetimes;
    struct plan_error error;
    if (!parse(argc, argv, &settings))
        return EXIT_USAGE;
    if (!read_graph(&graph, settings.file, &error))
        return command_fail(&error);
    bool good = make(&settings, &graph, &lifetimes, &error);
    if (good) {
        good = csv_write_lifetimes(&lifetimes, settings.output, &error) &&
               report(&settings, &graph, &lifetimes, &error);
        lifetimes_free(&lifetimes);
    }
    graph_free(&graph);
    return good ? EXIT_GOOD : command_fail(&error);
}
