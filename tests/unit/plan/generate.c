/*
 * plan-generate: makes instances for the planner's tests and benchmarks.
 *
 *   plan-generate train ROWS SEED        lifetimes like those of training a network: weights and
 *                                        optimiser states that stay, steps of several micro-batches
 * with gradient accumulation and sequence lengths that vary, layers forward and backward with
 * activations, temporaries and workspaces of mixed sizes, input buffers fetched ahead plan-generate
 * cut ROWS SEED [FILL]   a rectangle of time and memory (2^20 each) cut at random into ROWS pieces,
 * of which FILL per cent stay (default 95); what is left packs into 2^20 bytes (use --align 1): as
 * hard as the instances of MiniMalloc plan-generate loop STEPS SEED [JITTER]   a recorded trace
 * (layout/trace.h) of a loop that allocates the same in each step; sizes vary by JITTER
 * per cent plan-generate noise ROWS SEED        a recorded trace without any period
 *
 * CSV or trace goes to standard output. The same arguments give the same bytes on every machine.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mix.h"
#include "planner/common/random.h"
#include "tools/plan/trace/read_trace.h"

static uint64_t state;

static uint64_t below(uint64_t most) {
    return random_next(&state) % most;
}

struct row {
    uint64_t lower, upper, size;
};

struct rows {
    struct row *list;
    size_t count, room;
    uint64_t now;
};

static size_t add_row(struct rows *rows, uint64_t size) {
    if (rows->count == rows->room) {
        rows->room = rows->room == 0 ? 1024 : rows->room * 2;
        rows->list = realloc(rows->list, rows->room * sizeof *rows->list);
        if (rows->list == NULL)
            abort();
    }
    rows->list[rows->count] = (struct row){rows->now++, 0, size};
    return rows->count++;
}

static void end_row(struct rows *rows, size_t row) {
    rows->list[row].upper = rows->now++;
}

#define LAYERS 48
#define WEIGHTS 6     /* a layer */
#define ACTIVATIONS 5 /* a layer, kept for the backward pass */
#define TEMPORARIES 6 /* a layer, at most */
#define MICRO_BATCHES 4

struct network {
    uint64_t weight[LAYERS][WEIGHTS];         /* bytes */
    uint64_t activation[LAYERS][ACTIVATIONS]; /* bytes for a sequence of full length */
    size_t gradient[LAYERS][WEIGHTS];         /* rows */
    size_t kept[LAYERS][ACTIVATIONS];         /* rows */
};

static void draw_network(struct network *network) {
    const uint64_t width = 512 + 128 * below(16);
    for (int layer = 0; layer < LAYERS; layer++) {
        for (int i = 0; i < WEIGHTS; i++)
            network->weight[layer][i] = i < 2 ? width * 4 : width * width * (1 + below(4)) * 4;
        for (int i = 0; i < ACTIVATIONS; i++)
            network->activation[layer][i] = width * (1 + below(4)) * 2048 * (1 + below(2));
    }
}

static void run_temporaries(struct rows *rows, uint64_t like, uint64_t length) {
    size_t open[TEMPORARIES];
    const size_t count = 1 + below(TEMPORARIES);
    for (size_t i = 0; i < count; i++)
        open[i] = add_row(rows, below(5) == 0 ? 256 + below(65536)
                                              : like * length / 100 / (1 + below(3)) + below(4096));
    for (size_t i = 0; i < count; i++)
        end_row(rows, open[i]);
}

static void run_forward(struct rows *rows, struct network *network, uint64_t length) {
    for (int layer = 0; layer < LAYERS; layer++) {
        for (int i = 0; i < ACTIVATIONS; i++) {
            network->kept[layer][i] = add_row(rows, network->activation[layer][i] * length / 100);
            if (below(2) == 0)
                run_temporaries(rows, network->activation[layer][i], length);
        }
    }
}

static void run_backward(struct rows *rows, struct network *network, uint64_t length, bool first) {
    size_t incoming = add_row(rows, network->activation[LAYERS - 1][0] * length / 100);
    for (int layer = LAYERS - 1; layer >= 0; layer--) {
        for (int i = 0; first && i < WEIGHTS; i++)
            network->gradient[layer][i] = add_row(rows, network->weight[layer][i]);
        run_temporaries(rows, network->weight[layer][WEIGHTS - 1], 100);
        const size_t outgoing = add_row(rows, network->activation[layer][0] * length / 100);
        for (int i = ACTIVATIONS - 1; i >= 0; i--) {
            if (below(3) == 0)
                run_temporaries(rows, network->activation[layer][i], length);
            end_row(rows, network->kept[layer][i]);
        }
        end_row(rows, incoming);
        incoming = outgoing;
    }
    end_row(rows, incoming);
}

static void run_optimizer(struct rows *rows, struct network *network) {
    for (int layer = 0; layer < LAYERS; layer++) {
        for (int i = 0; i < WEIGHTS; i++) {
            const size_t update = add_row(rows, network->weight[layer][i]);
            end_row(rows, network->gradient[layer][i]);
            end_row(rows, update);
        }
    }
}

static void print_rows(const struct rows *rows) {
    puts("id,lower,upper,size");
    for (size_t i = 0; i < rows->count; i++)
        printf("%zu,%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", i, rows->list[i].lower,
               rows->list[i].upper, rows->list[i].size);
}

static void make_train(uint64_t wanted) {
    struct rows rows = {0};
    struct network *network = calloc(1, sizeof *network);
    if (network == NULL)
        abort();
    draw_network(network);
    for (int layer = 0; layer < LAYERS; layer++)
        for (int i = 0; i < 3 * WEIGHTS; i++) /* weights and two states for each */
            add_row(&rows, network->weight[layer][i % WEIGHTS]);
    size_t ahead = add_row(&rows, 4 << 20);
    while (rows.count < wanted) {
        for (int batch = 0; batch < MICRO_BATCHES; batch++) {
            const uint64_t length = 50 + below(51); /* per cent */
            const size_t input = ahead;
            ahead = add_row(&rows, (2 + below(3)) << 20);
            run_forward(&rows, network, length);
            run_backward(&rows, network, length, batch == 0);
            end_row(&rows, input);
        }
        run_optimizer(&rows, network);
    }
    for (size_t i = 0; i < rows.count; i++)
        if (rows.list[i].upper == 0)
            rows.list[i].upper = rows.now;
    print_rows(&rows);
    free(rows.list);
    free(network);
}

#define SIDE ((uint64_t)1 << 20)
#define GRAIN 1024 /* cuts are at multiples of it */

struct piece {
    uint64_t left, right, low, high;
};

/* Cuts a piece in two at random, across its longer side more often. */
static bool cut_piece(struct piece *piece, struct piece *rest) {
    const uint64_t width = piece->right - piece->left;
    const uint64_t height = piece->high - piece->low;
    const bool across = below(width + height) < width;
    const uint64_t side = across ? width : height;
    if (side < 2 * GRAIN)
        return false;
    const uint64_t at = GRAIN * (1 + below(side / GRAIN - 1));
    *rest = *piece;
    if (across)
        piece->right = rest->left = piece->left + at;
    else
        piece->high = rest->low = piece->low + at;
    return true;
}

static void make_cut(uint64_t wanted, uint64_t fill) {
    const uint64_t total = wanted * 100 / fill;
    struct piece *pieces = calloc(total + 2, sizeof *pieces);
    if (pieces == NULL)
        abort();
    size_t count = 1;
    pieces[0] = (struct piece){0, SIDE, 0, SIDE};
    while (count < total) {
        /* Of three, the largest: sizes stay mixed, but none dwarfs the others. */
        size_t chosen = below(count);
        for (int i = 0; i < 2; i++) {
            const size_t other = below(count);
            const struct piece *a = &pieces[chosen];
            const struct piece *b = &pieces[other];
            if ((b->right - b->left) * (b->high - b->low) >
                (a->right - a->left) * (a->high - a->low))
                chosen = other;
        }
        count += cut_piece(&pieces[chosen], &pieces[count]);
    }
    puts("id,lower,upper,size");
    for (size_t i = 0; i < count; i++)
        if (i == 0 || below(100) < fill)
            printf("%zu,%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", i, pieces[i].left, pieces[i].right,
                   pieces[i].high - pieces[i].low);
    free(pieces);
}

#define LOOP_BLOCKS 40 /* a step */
#define LOOP_PREFIX 25

struct recorder {
    struct trace trace;
    uint64_t serial;
    size_t room;
};

static void record(struct recorder *r, enum bfc_trace_op op, uint64_t serial, uint64_t bytes) {
    if (r->trace.count == r->room) {
        r->room = r->room == 0 ? 1024 : r->room * 2;
        r->trace.records = realloc(r->trace.records, r->room * sizeof *r->trace.records);
        if (r->trace.records == NULL)
            abort();
    }
    r->trace.records[r->trace.count] = (struct bfc_trace_record){
        .sequence = r->trace.count, .serial = serial, .bytes = bytes, .op = (uint16_t)op};
    r->trace.count++;
}

static uint64_t allocate(struct recorder *r, uint64_t bytes) {
    record(r, BFC_TRACE_ALLOCATE, ++r->serial, bytes);
    return r->serial;
}

static void finish_trace(struct recorder *r) {
    r->trace.header = (struct bfc_trace_header){
        .rounding = 512, .executable_hash = 1, .argument_hash = 2, .device = "generated"};
    if (!trace_write(&r->trace, stdout, BFC_TRACE_ZSTD))
        abort();
    free(r->trace.records);
}

/* Each step keeps block i until block LOOP_BLOCKS - i is made, and one block until the next step.
 */
static void make_loop(uint64_t steps, uint64_t jitter) {
    struct recorder recorder = {0};
    uint64_t sizes[LOOP_BLOCKS], serials[LOOP_BLOCKS];
    uint64_t previous = 0;
    for (int i = 0; i < LOOP_PREFIX; i++)
        allocate(&recorder, 4096 * (1 + below(100)));
    for (int i = 0; i < LOOP_BLOCKS; i++)
        sizes[i] = 512 * (20 + below(4000));
    for (uint64_t step = 0; step < steps; step++) {
        for (int i = 0; i < LOOP_BLOCKS; i++) {
            const uint64_t less = jitter == 0 ? 0 : sizes[i] * below(jitter + 1) / 100;
            serials[i] = allocate(&recorder, sizes[i] - less);
            if (i == 5 && previous != 0)
                record(&recorder, BFC_TRACE_FREE, previous, 0);
            if (i >= LOOP_BLOCKS / 2)
                record(&recorder, BFC_TRACE_FREE, serials[LOOP_BLOCKS - 1 - i], 0);
        }
        for (int i = LOOP_BLOCKS / 2; i < LOOP_BLOCKS - 1; i++)
            record(&recorder, BFC_TRACE_FREE, serials[i], 0);
        previous = serials[LOOP_BLOCKS - 1];
    }
    finish_trace(&recorder);
}

static void make_noise(uint64_t rows) {
    struct recorder recorder = {0};
    for (uint64_t i = 0; i < rows; i++) {
        const uint64_t serial = allocate(&recorder, 1 + below((uint64_t)1 << (10 + below(20))));
        if (below(3) > 0)
            record(&recorder, BFC_TRACE_FREE, serial, 0);
    }
    finish_trace(&recorder);
}

static uint64_t number(const char *text, uint64_t most) {
    char *end;
    const uint64_t value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || value > most) {
        fprintf(stderr, "plan-generate: '%s' is not a whole number up to %" PRIu64 "\n", text,
                most);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv) {
    if (argc < 4 || argc > 5) {
        fputs("usage: plan-generate train|cut|loop|noise NUMBER SEED [FILL|JITTER]\n", stderr);
        return 2;
    }
    const uint64_t count = number(argv[2], 100000000);
    state = bfc_mix_join(0, number(argv[3], UINT64_MAX));
    if (strcmp(argv[1], "train") == 0)
        make_train(count);
    else if (strcmp(argv[1], "cut") == 0)
        make_cut(count, argc == 5 ? 1 + number(argv[4], 99) : 95);
    else if (strcmp(argv[1], "loop") == 0)
        make_loop(count, argc == 5 ? number(argv[4], 90) : 0);
    else if (strcmp(argv[1], "noise") == 0)
        make_noise(count);
    else
        return fputs("plan-generate: accepted are train, cut, loop, noise\n", stderr), 2;
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
