/*
 * Damaged files for the planner's readers: plan-fuzz csv|graph|trace|plan [SEED [ROUNDS]].
 *
 * Each round takes an honest file and damages it: bytes overwritten, words set to extremes, pieces
 * doubled, moved or cut off; binary files get their checksums mended half of the time, so that the
 * checks behind them are reached. What is accepted is used further (packed, validated, drawn). What
 * may happen is a refusal with one line that names the file, or a valid plan; what may not is a
 * fault or a sanitizer's report. Prints the seed, so that a failure can be repeated.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/common/random.h"
#include "planner/model/validate.h"
#include "planner/pack/solve.h"
#include "planner/period/fold.h"
#include "tools/plan/graph/graph.h"
#include "tools/plan/graph/schedule.h"
#include "tools/plan/io/csv.h"
#include "tools/plan/io/plan_file.h"
#include "tools/plan/trace/read_trace.h"
#include "tools/plan/trace/trace_events.h"

#define NAME "fuzzed"

static uint64_t state;

static size_t below(size_t most) {
    return most == 0 ? 0 : (size_t)(random_next(&state) % most);
}

static struct file_text copy_of(const struct file_text *text) {
    struct file_text copy = {malloc(text->size * 2 + 64), text->size};
    if (copy.bytes == NULL)
        abort();
    memcpy(copy.bytes, text->bytes, text->size);
    copy.bytes[copy.size] = '\0';
    return copy;
}

static void overwrite(struct file_text *text) {
    static const uint64_t extremes[] = {0,         1,          INT32_MAX,        UINT32_MAX,
                                        INT64_MAX, UINT64_MAX, (uint64_t)1 << 63};
    static const char letters[] = "0123456789,,,\n\n\"-{}[]:a ";
    const size_t at = below(text->size);
    const uint64_t extreme = extremes[below(7)];
    const size_t width = below(2) ? 8 : 4;
    switch (below(3)) {
    case 0:
        text->bytes[at] = (char)(text->bytes[at] ^ 1 << below(8));
        break;
    case 1:
        text->bytes[at] = letters[below(sizeof letters - 1)];
        break;
    default:
        if ((at & ~(size_t)3) + width <= text->size)
            memcpy(text->bytes + (at & ~(size_t)3), &extreme, width);
    }
}

static void rearrange(struct file_text *text) {
    const size_t from = below(text->size), to = below(text->size);
    size_t length = below(text->size - (from > to ? from : to)) % 64;
    memmove(text->bytes + to, text->bytes + from, length);
    if (below(8) == 0)
        text->size = below(text->size) + 1;
    text->bytes[text->size] = '\0';
}

static void damage(struct file_text *text) {
    for (size_t times = 1 + below(4); times > 0; times--) {
        if (below(4) > 0)
            overwrite(text);
        else
            rearrange(text);
    }
}

static void check_refusal(const struct plan_error *error) {
    if (strstr(error->text, NAME) != NULL && strchr(error->text, '\n') == NULL)
        return;
    fprintf(stderr, "a refusal that names no file, or has more than one line: %s\n", error->text);
    abort();
}

static void pack(const struct lifetimes *lifetimes) {
    static const bool never;
    const struct solve_options options = {
        .seconds = 0.01, .capacity = UINT64_MAX, .threads = 1, .seed = 1, .interrupted = &never};
    struct problem problem;
    struct solve_result result;
    struct plan_error error = {{0}};
    if (!problem_build(&problem, lifetimes, 8, 0, &error)) {
        check_refusal(&error);
        return;
    }
    uint64_t *offsets = calloc((size_t)lifetimes->count + 1, sizeof *offsets);
    uint64_t *peaks = calloc((size_t)problem.count + 1, sizeof *peaks);
    const bool pins = !lifetimes->has_pin || validate_pins(lifetimes, 8, 0, &error);
    if (pins && solve(&problem, &options, offsets, &result, &error)) {
        if (!validate(lifetimes, offsets, 8, 0, peaks, &error)) {
            fprintf(stderr, "an invalid plan: %s\n", error.text);
            abort();
        }
        free(result.peaks);
    }
    free(offsets);
    free(peaks);
    problem_free(&problem);
}

static void try_csv(struct file_text text) {
    struct lifetimes lifetimes;
    struct plan_error error;
    if (!csv_parse(&lifetimes, &text, NAME, &error)) {
        check_refusal(&error);
        return;
    }
    pack(&lifetimes);
    lifetimes_free(&lifetimes);
}

static void use_graph(const struct graph *graph) {
    uint32_t *nodes = calloc((size_t)graph->nodes_count + 1, sizeof *nodes);
    struct lifetimes lifetimes;
    struct plan_error error;
    const bool good = schedule(graph, (enum schedule_order)below(4), 0.01, 1, nodes, &error) &&
                      schedule_lifetimes(&lifetimes, graph, nodes, &error);
    free(nodes);
    if (!good) {
        check_refusal(&error);
        return;
    }
    pack(&lifetimes);
    lifetimes_free(&lifetimes);
}

static void try_graph(struct file_text text) {
    struct graph graph;
    struct plan_error error;
    const bool good = graph_parse(&graph, &text, NAME, &error);
    file_free(&text);
    if (!good) {
        check_refusal(&error);
        return;
    }
    use_graph(&graph);
    graph_free(&graph);
}

static void mend_trace(struct file_text *text) {
    struct bfc_trace_block block;
    size_t at = sizeof(struct bfc_trace_header);
    while (text->size >= at + sizeof block) {
        memcpy(&block, text->bytes + at, sizeof block);
        if (block.bytes > text->size - at - sizeof block)
            return;
        block.sum = bfc_trace_sum(text->bytes + at + sizeof block, block.bytes);
        memcpy(text->bytes + at, &block, sizeof block);
        at += sizeof block + block.bytes;
    }
}

static void use_trace(const struct trace *trace) {
    struct events events;
    struct period period;
    struct lifetimes lifetimes;
    struct plan_error error;
    if (!events_from_trace(&events, trace, &error)) {
        check_refusal(&error);
        return;
    }
    if (period_find(&period, &events, &error) &&
        fold(&lifetimes, &events, &period, trace->path, 0, &error)) {
        pack(&lifetimes);
        lifetimes_free(&lifetimes);
    }
    events_free(&events);
}

/* As bfcreplay does. */
static void use_stacks(const struct trace *trace) {
    struct bfc_who who;
    if (stacks_who(&trace->stacks, &who))
        bfc_who_free(&who);
}

static void try_trace(struct file_text text) {
    struct trace trace;
    struct plan_error error;
    if (below(2))
        mend_trace(&text);
    const bool good = trace_parse(&trace, &text, NAME, &error);
    file_free(&text);
    if (!good) {
        check_refusal(&error);
        return;
    }
    use_trace(&trace);
    use_stacks(&trace);
    trace_free(&trace);
}

static void mend_plan(struct file_text *text) {
    struct bfc_plan_header header;
    if (text->size < sizeof header)
        return;
    memcpy(&header, text->bytes, sizeof header);
    header.file_bytes = text->size;
    memcpy(text->bytes, &header, sizeof header);
    header.checksum = bfc_plan_checksum(text->bytes, text->size);
    memcpy(text->bytes, &header, sizeof header);
}

static void try_plan(struct file_text text) {
    struct plan_file plan;
    struct plan_error error;
    if (below(2))
        mend_plan(&text);
    if (plan_parse(&plan, &text, NAME, &error))
        plan_free(&plan);
    else
        check_refusal(&error);
}

static const char csv_text[] = "id,lower,upper,size,alias,group,space,offset,stream\n"
                               "a,0,5,100,,,x,,1\nb,3,9,200,a,,x,,1\nc,1,7,50,,g,y,,2\n"
                               "d,2,8,70,,g,y,,2\n\"e,f\",0,9,4096,,,x,1024,1\n"
                               "g,-5,9223372036854775808,9,,,y,,\n";
static const char graph_text[] =
    "{\"inputs\":[{\"name\":\"x\",\"size\":4096}],\"nodes\":[{\"name\":\"a\",\"inputs\":[\"x\"],"
    "\"outputs\":[{\"name\":\"y\",\"size\":100,\"keep\":false}],\"workspace\":7},\n{\"name\":\"b\","
    "\"inputs\":[\"y\",\"x\"],\"outputs\":[{\"name\":\"z\",\"size\":64,\"alias\":\"y\"}]},\n"
    "{\"name\":\"c\",\"inputs\":[\"z\"],\"outputs\":[{\"name\":\"w\",\"size\":8}]}],"
    "\"outputs\":[\"w\"]}\n";

static struct file_text take_stream(FILE *stream) {
    struct file_text text = {NULL, 0};
    const long size = ftell(stream);
    text.size = (size_t)size;
    text.bytes = malloc(text.size + 1);
    rewind(stream);
    if (text.bytes == NULL || fread(text.bytes, 1, text.size, stream) != text.size)
        abort();
    fclose(stream);
    return text;
}

/* Two sites of one frame each, native and Python. */
static struct stacks honest_stacks(void) {
    static struct bfc_who_site sites[] = {
        {0}, {.first = 0, .native = 1}, {.first = 1, .python = 1, .tag = 5}};
    static struct bfc_who_frame frames[] = {{.object = 1, .place = 64},
                                            {.object = 5, .file = 11, .place = 88}};
    static struct bfc_who_object objects[] = {{.end = 4096, .path = 1}};
    static char texts[] = "\0lib\0train\0loader.py";
    return (struct stacks){.sites = {(char *)sites, sizeof sites},
                           .frames = {(char *)frames, sizeof frames},
                           .objects = {(char *)objects, sizeof objects},
                           .texts = {texts, sizeof texts},
                           .executable = 1};
}

static struct file_text honest_trace(enum bfc_trace_codec codec) {
    struct bfc_trace_record records[120] = {0};
    struct trace trace = {.records = records, .count = 120, .stacks = honest_stacks()};
    FILE *stream = tmpfile();
    for (uint32_t i = 0; i < 120; i++)
        records[i] = (struct bfc_trace_record){.sequence = i,
                                               .serial = i % 2 ? i - 1 : i,
                                               .bytes = 512 * (1 + i % 6),
                                               .op = i % 2 ? BFC_TRACE_FREE : BFC_TRACE_ALLOCATE};
    for (uint32_t i = 3; i < 120; i += 12)
        records[i] = (struct bfc_trace_record){.sequence = i,
                                               .serial = i - 1,
                                               .bytes = 1 << 20,
                                               .stream = 1 + i / 12 % 2,
                                               .op = BFC_TRACE_STACK};
    if (stream == NULL || !trace_write(&trace, stream, codec))
        abort();
    return take_stream(stream);
}

static struct file_text honest_plan(void) {
    struct file_text text = {strdup(csv_text), sizeof csv_text - 1};
    char path[] = "/tmp/plan-fuzz.XXXXXX";
    const uint64_t bounds[2] = {8192, 4096};
    uint64_t offsets[6] = {0, 0, 0, 512, 1024, 1024};
    uint64_t peaks[2] = {8192, 4096};
    struct lifetimes lifetimes;
    struct plan_error error;
    const int descriptor = mkstemp(path);
    if (descriptor < 0 || !csv_parse(&lifetimes, &text, NAME, &error))
        abort();
    const struct plan_content content = {&lifetimes, offsets, bounds, peaks, 512, 0};
    if (!plan_write(&content, path, &error) || !file_read(&text, path, &error))
        abort();
    remove(path);
    lifetimes_free(&lifetimes);
    return text;
}

static const struct target {
    const char *name;
    void (*run)(struct file_text text);
} targets[] = {{"csv", try_csv}, {"graph", try_graph}, {"trace", try_trace}, {"plan", try_plan}};

static struct file_text honest(const char *name) {
    if (strcmp(name, "csv") == 0)
        return (struct file_text){strdup(csv_text), sizeof csv_text - 1};
    if (strcmp(name, "graph") == 0)
        return (struct file_text){strdup(graph_text), sizeof graph_text - 1};
    return strcmp(name, "trace") == 0 ? honest_trace(below(2) ? BFC_TRACE_ZSTD : BFC_TRACE_PLAIN)
                                      : honest_plan();
}

int main(int argc, char **argv) {
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    const unsigned long rounds = argc > 3 ? strtoul(argv[3], NULL, 10) : 1000;
    for (size_t i = 0; argc > 1 && i < sizeof targets / sizeof *targets; i++) {
        if (strcmp(argv[1], targets[i].name) != 0)
            continue;
        printf("seed %" PRIu64 ", %lu rounds\n", seed, rounds);
        fflush(stdout);
        state = seed;
        struct file_text seed_text = honest(targets[i].name);
        targets[i].run(copy_of(&seed_text)); /* the honest file itself */
        for (unsigned long round = 0; round < rounds; round++) {
            struct file_text text = copy_of(&seed_text);
            damage(&text);
            targets[i].run(text);
        }
        file_free(&seed_text);
        return 0;
    }
    fputs("usage: plan-fuzz csv|graph|trace|plan [SEED [ROUNDS]]\n", stderr);
    return 2;
}
