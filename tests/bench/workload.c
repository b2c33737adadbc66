/* Workloads: generators and the reader of traces. */
#include "tests/bench/workload.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TENSORS 2000
#define LAYERS 40
#define FORWARD 40 /* tensors a layer */
#define GRADIENTS 10
#define PERSISTENT 200
#define SIZES 22

static const uint32_t sizes[SIZES] = {
    512,       2048,      8192,      32768,     131072,    524288,    1u << 20,  2u << 20,
    3u << 20,  4u << 20,  6u << 20,  8u << 20,  12u << 20, 16u << 20, 24u << 20, 28u << 20,
    32u << 20, 36u << 20, 40u << 20, 48u << 20, 56u << 20, 64u << 20};

uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint32_t below(uint64_t *state, uint32_t n) {
    return (uint32_t)(next_random(state) % n);
}

static double uniform(uint64_t *state, double from, double to) {
    return from + (to - from) * (double)(next_random(state) >> 11) * 0x1p-53;
}

static void add(struct workload *w, uint32_t slot, uint32_t bytes) {
    if (w->count == w->room) {
        w->room = w->room ? w->room * 2 : 1024;
        w->ops = realloc(w->ops, w->room * sizeof *w->ops);
        if (!w->ops)
            abort();
    }
    w->ops[w->count++] = (struct op){slot, bytes};
    if (slot >= w->slots)
        w->slots = slot + 1;
}

static void make_random(struct workload *w, uint64_t seed, unsigned scale) {
    const uint32_t live = 10000;
    for (uint32_t i = 0; i < live; i++)
        add(w, i, (uint32_t)exp2(uniform(&seed, 9, 26)));
    w->setup = w->count;
    for (unsigned i = 0; i < 2500000 / scale; i++) {
        uint32_t slot = below(&seed, live);
        add(w, slot, 0);
        add(w, slot, (uint32_t)exp2(uniform(&seed, 9, 26)));
    }
}

void workload_churn(struct workload *w, uint64_t seed, uint32_t live, size_t steps) {
    *w = (struct workload){0};
    for (uint32_t i = 0; i < live; i++)
        add(w, i, 4096);
    w->setup = w->count;
    for (size_t i = 0; i < steps; i++) {
        uint32_t slot = below(&seed, live);
        add(w, slot, 0);
        add(w, slot, 4096);
    }
    w->peak_live = (uint64_t)live * 4096;
}

static void make_pingpong(struct workload *w, uint64_t seed, unsigned scale) {
    for (uint32_t i = 0; i < 1000; i++)
        add(w, i, 65536);
    (void)seed;
    w->setup = w->count;
    for (unsigned i = 0; i < 5000000 / scale; i++) {
        add(w, 1000, 65536);
        add(w, 1000, 0);
    }
}

/* One iteration of training: which tensor is allocated (its size to come) or freed, in order. */
struct iteration {
    uint32_t bytes[TENSORS];
    bool dynamic[TENSORS];
    struct {
        uint16_t tensor;
        bool allocate;
    } events[2 * TENSORS];
    size_t count;
};

static void event(struct iteration *it, unsigned tensor, bool allocate) {
    it->events[it->count].tensor = (uint16_t)tensor;
    it->events[it->count++].allocate = allocate;
}

/* A quarter are temporaries, freed 1 to 8 allocations later; the others are kept, by layer. */
static void go_forward(struct iteration *it, uint64_t *seed, uint16_t kept[LAYERS][FORWARD],
                       unsigned kept_count[LAYERS]) {
    uint16_t due[LAYERS * FORWARD] = {0}; /* when each temporary is freed; 0: it is none */
    for (unsigned t = 0; t < LAYERS * FORWARD + 8; t++) {
        for (unsigned u = t > 8 ? t - 8 : 0; u < t && u < LAYERS * FORWARD; u++)
            if (due[u] == t)
                event(it, u, false);
        if (t >= LAYERS * FORWARD)
            continue;
        event(it, t, true);
        if (below(seed, 4) == 0)
            due[t] = (uint16_t)(t + 1 + below(seed, 8));
        else
            kept[t / FORWARD][kept_count[t / FORWARD]++] = (uint16_t)t;
    }
    for (unsigned u = LAYERS * FORWARD - 8; u < LAYERS * FORWARD; u++)
        if (due[u] >= LAYERS * FORWARD + 8)
            event(it, u, false);
}

static void reverse_and_swap(uint16_t *kept, unsigned count, uint64_t *seed) {
    for (unsigned i = 0; i < count / 2; i++) {
        uint16_t t = kept[i];
        kept[i] = kept[count - 1 - i];
        kept[count - 1 - i] = t;
    }
    for (unsigned i = 0; i + 1 < count; i++)
        if (below(seed, 5) == 0) {
            uint16_t t = kept[i];
            kept[i] = kept[i + 1];
            kept[i + 1] = t;
        }
}

static void go_back(struct iteration *it, unsigned layer, uint16_t *kept, unsigned count) {
    unsigned freed = 0, first = LAYERS * FORWARD + (LAYERS - 1 - layer) * GRADIENTS;
    for (unsigned g = 0; g < GRADIENTS; g++) {
        event(it, first + g, true);
        for (unsigned i = 0; i < count / GRADIENTS; i++)
            event(it, kept[freed++], false);
    }
    while (freed < count)
        event(it, kept[freed++], false);
    for (unsigned g = 0; g < GRADIENTS; g++)
        event(it, first + g, false);
}

static void make_iteration(struct iteration *it, uint64_t *seed) {
    uint16_t kept[LAYERS][FORWARD];
    unsigned count[LAYERS] = {0};
    *it = (struct iteration){0};
    for (unsigned t = 0; t < TENSORS; t++) {
        it->bytes[t] = sizes[below(seed, SIZES)];
        it->dynamic[t] = below(seed, 10) < 7;
    }
    go_forward(it, seed, kept, count);
    for (unsigned layer = LAYERS; layer-- > 0;) {
        reverse_and_swap(kept[layer], count[layer], seed);
        go_back(it, layer, kept[layer], count[layer]);
    }
}

static void make_train(struct workload *w, uint64_t seed, unsigned scale, bool dynamic) {
    struct iteration *it = malloc(sizeof *it);
    if (!it)
        abort();
    for (uint32_t i = 0; i < PERSISTENT; i++)
        add(w, i, sizes[below(&seed, SIZES)]);
    w->setup = w->count;
    make_iteration(it, &seed);
    for (unsigned round = 0; round < 1000 / scale; round++) {
        double factor = dynamic ? uniform(&seed, 0.7, 1.3) : 1;
        for (size_t e = 0; e < it->count; e++) {
            unsigned t = it->events[e].tensor;
            double bytes = it->bytes[t] * (it->dynamic[t] ? factor : 1);
            add(w, PERSISTENT + t, it->events[e].allocate ? (uint32_t)fmax(bytes, 1) : 0);
        }
    }
    free(it);
}

static void find_peak(struct workload *w) {
    uint64_t *live = calloc(w->slots, sizeof *live), now = 0;
    if (!live)
        abort();
    for (size_t i = 0; i < w->count; i++) {
        const struct op *op = &w->ops[i];
        now -= live[op->slot];
        live[op->slot] = ((uint64_t)op->bytes + 511) / 512 * 512;
        now += live[op->slot];
        w->peak_live = now > w->peak_live ? now : w->peak_live;
    }
    free(live);
}

bool workload_make(struct workload *w, const char *name, uint64_t seed, unsigned scale) {
    *w = (struct workload){0};
    if (!strcmp(name, "random"))
        make_random(w, seed, scale);
    else if (!strcmp(name, "train") || !strcmp(name, "traindyn"))
        make_train(w, seed, scale, !strcmp(name, "traindyn"));
    else if (!strcmp(name, "churn"))
        workload_churn(w, seed, 8192, 5000000 / scale);
    else if (!strcmp(name, "pingpong"))
        make_pingpong(w, seed, scale);
    else
        return false;
    find_peak(w);
    return true;
}

struct edge {
    uint64_t time;
    struct op op;
};

static int by_time(const void *a, const void *b) {
    const struct edge *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (!x->op.bytes != !y->op.bytes)
        return x->op.bytes ? 1 : -1;
    return x->op.slot < y->op.slot ? -1 : x->op.slot > y->op.slot;
}

bool workload_read(struct workload *w, const char *path) {
    *w = (struct workload){0};
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    struct edge *edges = NULL;
    size_t count = 0;
    char line[256];
    while (fgets(line, sizeof line, file)) {
        uint64_t lower, upper;
        uint32_t bytes;
        if (sscanf(line, "%*[^,],%" SCNu64 ",%" SCNu64 ",%" SCNu32, &lower, &upper, &bytes) != 3)
            continue;
        edges = realloc(edges, (count + 2) * sizeof *edges);
        if (!edges)
            abort();
        uint32_t slot = (uint32_t)(count / 2);
        edges[count++] = (struct edge){lower, {slot, bytes}};
        edges[count++] = (struct edge){upper, {slot, 0}};
    }
    fclose(file);
    qsort(edges, count, sizeof *edges, by_time);
    for (size_t i = 0; i < count; i++)
        add(w, edges[i].op.slot, edges[i].op.bytes);
    free(edges);
    if (w->count)
        find_peak(w);
    return w->count;
}

void workload_drop(struct workload *w) {
    free(w->ops);
    *w = (struct workload){0};
}
