/*
 * What random programs are made of: chance, calls that may be refused, contexts with their kernels,
 * and blocks that are used in the order of the program's text whichever stream they are used in.
 */
#ifndef BFC_TESTS_STRESS_WORKER_H
#define BFC_TESTS_STRESS_WORKER_H

#include <stdbool.h>
#include <stdint.h>

/* A call that was refused without being made, as SIM_FAIL=random does, is made again. */
static bool again_(int code, int wanted, const char *call, int line, unsigned *tries);
#define ANSWERS(wanted, call)                                                                      \
    for (unsigned tries_ = 0; again_((int)(call), (wanted), #call, __LINE__, &tries_);)            \
    continue
#define MUST(call) ANSWERS(0, call)

#include "tests/conformance/gpu.h"
#include "tests/stress/programs/hostile.h"

/* Streams of the usual context, one that captures only, and one of the other device. */
enum { STREAMS = 3, CAPTURER = STREAMS, FAR, ALL_STREAMS, BLOCKS = 12, MOST_TRIES = 300 };
enum kernel { FILL, SLOW_FILL, ADD, COPY, WAIT_FLAG, SET_FLAG, KERNELS };
enum flag { RAISED, GATE, FLAGS };

struct block {
    void *start;
    size_t bytes;      /* a multiple of 4 */
    int stream;        /* that used it last */
    int side;          /* whose memory it is */
    CUgraphExec graph; /* work on it that is launched now and then; NULL: none */
};

struct side {
    CUcontext context;
    CUevent event;
    CUfunction kernels[KERNELS];
};

/* A capture that stays open through other work. */
enum open_capture { NONE, GOING, SPOILT };

struct worker {
    unsigned index;
    uint64_t state, digest, operations;
    CUcontext own;        /* NULL: the primary one */
    struct side sides[2]; /* the usual context, and that of another device */
    CUstream streams[ALL_STREAMS];
    enum open_capture open; /* in stream CAPTURER */
    bool relaxed;           /* no capture bars this thread */
    bool peers_on;          /* kernels of each side reach the other's memory */
    uint32_t *flags;        /* pinned: what kernels of the usual context write and wait for */
    uint32_t values[FLAGS]; /* that they were last told */
    int held;               /* the stream that last waited for the host */
    struct block blocks[BLOCKS];
    unsigned count;
    char *bytes; /* room for the largest block */
    struct hostile_stack stack;
};

static const char *without; /* scenes that are left out, to look behind a known defect */
static bool are_refused;    /* calls, at random */
static bool is_small;       /* many cheap operations */
static bool has_global;     /* captures of mode global, and no thread that they bar */
static bool has_barrier;    /* a free waits: natively, and in mode sync */

static bool again_(int code, int wanted, const char *call, int line, unsigned *tries) {
    if (code == wanted)
        return false;
    if (are_refused && ++*tries < MOST_TRIES)
        return true;
    printf("line %d: %s: %s\n", line, call, name_of(code));
    fflush(stdout);
    _exit(1);
}

static void wrong(const char *what) {
    printf("%s\n", what);
    fflush(stdout);
    _exit(1);
}

static bool has_scene(const char *name) {
    return !without || !strstr(without, name);
}

/* Some of what a real driver leaves undefined is certain with the stand-in. */
static bool is_simulated(void) {
    return dlsym(RTLD_DEFAULT, "sim_call_count") != NULL;
}

/* ---- chance ---- */

static uint64_t draw(uint64_t *state) {
    uint64_t mixed = *state += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

static unsigned below(struct worker *worker, unsigned limit) {
    return (unsigned)(draw(&worker->state) % limit);
}

enum { MOST_WORDS = 900000, MOST_SMALL_WORDS = 60000 };

/* Mostly small, some of megabytes, or of hundreds of kilobytes. */
static size_t draw_size(struct worker *worker) {
    unsigned kind = below(worker, is_small ? 200 : 10), most = MOST_WORDS;
    if (is_small)
        most = kind < 160 ? 200 : kind < 199 ? 3000 : MOST_SMALL_WORDS;
    else if (kind < 9)
        most = kind < 6 ? 4000 : 60000;
    return 4 * (size_t)(1 + below(worker, most));
}

static void digest(struct worker *worker, uint64_t value) {
    worker->digest = (worker->digest ^ value) * 1099511628211u;
    worker->digest ^= worker->digest >> 29;
}

static void digest_bytes(struct worker *worker, const char *bytes, size_t count) {
    uint64_t value;
    for (; count >= sizeof value; bytes += sizeof value, count -= sizeof value) {
        memcpy(&value, bytes, sizeof value);
        digest(worker, value);
    }
    value = 0;
    memcpy(&value, bytes, count);
    digest(worker, value);
}

/* ---- order ---- */

static int side_of(int stream) {
    return stream == FAR;
}

static void enter(struct worker *worker, int side) {
    MUST(cuCtxSetCurrent(worker->sides[side].context));
}

/* Later work of stream `to` comes after earlier work of stream `from`. */
static void follow(struct worker *worker, int to, int from) {
    if (to == from)
        return;
    CUevent event = worker->sides[side_of(from)].event;
    MUST(cuEventRecord(event, worker->streams[from]));
    MUST(cuStreamWaitEvent(worker->streams[to], event, 0));
}

/* Makes the block usable in a stream, which is its last user from now on, and whose context is
 * current. */
static CUstream use(struct worker *worker, struct block *block, int stream) {
    follow(worker, stream, block->stream);
    block->stream = stream;
    enter(worker, side_of(stream));
    return worker->streams[stream];
}

static int draw_stream(struct worker *worker, int side) {
    return side ? FAR : (int)below(worker, STREAMS);
}

static struct block *any(struct worker *worker) {
    return worker->count ? &worker->blocks[below(worker, worker->count)] : NULL;
}

/* ---- work ---- */

static void run(struct worker *worker, int stream, enum kernel kernel, void **arguments) {
    worker->operations++;
    MUST(cuLaunchKernel(worker->sides[side_of(stream)].kernels[kernel], 1, 1, 1, 64, 1, 1, 0,
                        worker->streams[stream], arguments, NULL));
}

/* Fills a block that may be used in the stream. */
static void write_all(struct worker *worker, const struct block *block, int stream) {
    unsigned value = below(worker, 256);
    unsigned long long at = address(block->start), bytes = block->bytes, us;
    switch (below(worker, is_small ? 2 : 3)) {
    case 0:
        worker->operations++;
        MUST(cuMemsetD8Async(at, (unsigned char)value, bytes, worker->streams[stream]));
        break;
    case 1:
        run(worker, stream, FILL, (void *[]){&at, &bytes, &value});
        break;
    default:
        us = 1 + below(worker, 1500);
        run(worker, stream, SLOW_FILL, (void *[]){&at, &bytes, &value, &us});
    }
}

static void add_words(struct worker *worker, const struct block *block, int stream) {
    unsigned long long at = address(block->start), words = block->bytes / 4;
    unsigned addend = below(worker, UINT32_MAX);
    run(worker, stream, ADD, (void *[]){&at, &words, &addend});
}

/* By a copy of the driver's, which needs no peer access, or by a kernel, which does. */
static void copy_words(struct worker *worker, const struct block *to, const struct block *from,
                       int stream) {
    unsigned long long bytes = to->bytes < from->bytes ? to->bytes : from->bytes;
    unsigned long long target = address(to->start), source = address(from->start);
    bool reached =
        worker->peers_on || (to->side == side_of(stream) && from->side == side_of(stream));
    unsigned kind = reached || has_scene("plain") ? below(worker, 3) : 1;
    if (kind == 0 && reached) {
        run(worker, stream, COPY, (void *[]){&target, &source, &bytes});
        return;
    }
    worker->operations++;
    if (kind == 1)
        MUST(cuMemcpyPeerAsync(target, worker->sides[to->side].context, source,
                               worker->sides[from->side].context, bytes, worker->streams[stream]));
    else
        MUST(cuMemcpyDtoDAsync(target, source, bytes, worker->streams[stream]));
}

static void read_block(struct worker *worker, struct block *block) {
    bool reached = worker->peers_on || side_of(block->stream) == block->side;
    int at_home = block->side ? FAR : 0;
    CUstream stream = use(worker, block, reached || has_scene("plain") ? block->stream : at_home);
    worker->operations++;
    MUST(cuMemcpyDtoHAsync(worker->bytes, address(block->start), block->bytes, stream));
    MUST(cuStreamSynchronize(stream));
    digest_bytes(worker, worker->bytes, block->bytes);
}

/* A call for memory that is made on some stack. */
struct memory_call {
    void *start;
    size_t bytes; /* 0: a free */
    int code;
};

static void make_call(void *argument) {
    struct memory_call *call = argument;
    call->code = call->bytes ? allocate(&call->start, call->bytes) : release(call->start);
}

static int call_from(struct worker *worker, enum stack kind, struct memory_call *call) {
    call_on(kind, &worker->stack, make_call, call);
    return call->code;
}

static enum stack draw_stack(struct worker *worker) {
    unsigned kind = below(worker, 4 * STACK_KINDS);
    return kind < STACK_KINDS && has_scene("stacks") ? (enum stack)kind : USUAL;
}

static void *take(struct worker *worker, size_t bytes) {
    enum stack kind = draw_stack(worker);
    struct memory_call call = {.bytes = bytes};
    worker->operations++;
    MUST(call_from(worker, kind, &call));
    return call.start;
}

/* A free waits for all earlier work of its context, so the flag that the last of it raised is up.
 */
static void give(struct worker *worker, void *start, int side) {
    enum stack kind = draw_stack(worker);
    struct memory_call call = {.start = start};
    worker->operations++;
    MUST(call_from(worker, kind, &call));
    if (has_barrier && side == 0 && has_scene("barrier") &&
        __atomic_load_n(&worker->flags[RAISED], __ATOMIC_ACQUIRE) != worker->values[RAISED])
        wrong("a free did not wait for work before it");
}

static void raise_flag(struct worker *worker) {
    unsigned long long at = (uintptr_t)&worker->flags[RAISED];
    unsigned value = ++worker->values[RAISED];
    enter(worker, 0);
    /* After the last one: flags are raised in order. */
    run(worker, 0, SET_FLAG, (void *[]){&at, &value});
}

/* A kernel that waits for the host, once the last one has seen what it waited for. */
static void close_gate(struct worker *worker, int stream) {
    unsigned long long at = (uintptr_t)&worker->flags[GATE];
    unsigned value = ++worker->values[GATE];
    enter(worker, 0);
    MUST(cuStreamSynchronize(worker->streams[worker->held]));
    worker->held = stream;
    run(worker, stream, WAIT_FLAG, (void *[]){&at, &value});
}

static void open_gate(struct worker *worker) {
    __atomic_store_n(&worker->flags[GATE], worker->values[GATE], __ATOMIC_RELEASE);
}

static void finish_work(struct worker *worker) {
    for (int i = 0; i < ALL_STREAMS; i++)
        if (worker->streams[i] && (i != CAPTURER || worker->open == NONE))
            MUST(cuStreamSynchronize(worker->streams[i]));
}

/* ---- what a context has ---- */

static void open_side(struct worker *worker, int side) {
    static const char *const names[] = {"fill", "slow_fill", "add",
                                        "copy", "wait_flag", "set_flag"};
    CUmodule module;
    void *flags;
    enter(worker, side);
    MUST(cuModuleLoadData(&module, conformance_kernels));
    for (int i = 0; i < KERNELS; i++)
        MUST(cuModuleGetFunction(&worker->sides[side].kernels[i], module, names[i]));
    MUST(cuEventCreate(&worker->sides[side].event, CU_EVENT_DISABLE_TIMING));
    for (int i = side ? FAR : 0; i < (side ? ALL_STREAMS : FAR); i++)
        worker->streams[i] = new_stream();
    if (side)
        return;
    MUST(cuMemHostAlloc(&flags, FLAGS * sizeof(uint32_t), CU_MEMHOSTALLOC_DEVICEMAP));
    worker->flags = flags;
    memset(flags, 0, FLAGS * sizeof(uint32_t));
    memset(worker->values, 0, sizeof worker->values);
    worker->open = NONE;
}

#endif
