/*
 * What random programs are made of: chance, calls that may be refused, contexts with their kernels,
 * and blocks that are used in the order of the program's text whichever stream they are used in.
 */
#ifndef BFC_TESTS_STRESS_WORKER_H
#define BFC_TESTS_STRESS_WORKER_H

#include <sched.h>
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

/* Streams of the usual context: created ones, whose work is captured too; the legacy one, one that
 * waits for it and is waited for by it, and the thread's own; one that captures only. And one of
 * the other device. */
enum {
    CREATED = 3,
    LEGACY = CREATED,
    BLOCKING,
    OWN,
    STREAMS,
    CAPTURER = STREAMS,
    FAR,
    ALL_STREAMS
};
enum { BLOCKS = 12, MOST_TRIES = 300, STAGED_BYTES = 4096 };
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
    unsigned phase;         /* which streams of the usual context are used: a bit each */
    bool is_narrow;         /* they are one, or count as one */
    enum open_capture open; /* in stream CAPTURER */
    bool relaxed;           /* no capture bars this thread */
    bool peers_on;          /* kernels of each side reach the other's memory */
    uint32_t *flags;        /* pinned: what kernels of the usual context write and wait for */
    uint32_t values[FLAGS]; /* that they were last told */
    int held;               /* the stream that last waited for the host */
    int flagged;            /* the stream in which the last flag is raised */
    unsigned char *staged;  /* pinned: what a host function writes and a copy reads */
    int stager;             /* the stream that did so last */
    unsigned char staged_value;
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

/* Later work of stream `to` comes after earlier work of stream `from`. A default stream is that of
 * the current context. */
static void follow(struct worker *worker, int to, int from) {
    if (to == from)
        return;
    CUevent event = worker->sides[side_of(from)].event;
    enter(worker, side_of(from));
    MUST(cuEventRecord(event, worker->streams[from]));
    enter(worker, side_of(to));
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
    int stream = side ? FAR : (int)below(worker, STREAMS);
    while (!side && !(worker->phase >> stream & 1))
        stream = (stream + 1) % STREAMS;
    return stream;
}

static void finish_stream(struct worker *worker, int stream) {
    enter(worker, side_of(stream));
    MUST(cuStreamSynchronize(worker->streams[stream]));
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

/* By each of the driver's calls that set memory. Without a stream they are in the legacy one. */
static void set_all(struct worker *worker, CUdeviceptr at, size_t bytes, unsigned value,
                    int stream) {
    CUstream handle = worker->streams[stream];
    unsigned twice = value << 8 | value, four_times = twice << 16 | twice;
    worker->operations++;
    switch (below(worker, stream == LEGACY ? 6 : 4)) {
    case 0:
        MUST(cuMemsetD8Async(at, (unsigned char)value, bytes, handle));
        break;
    case 1:
        MUST(cuMemsetD16Async(at, (unsigned short)twice, bytes / 2, handle));
        break;
    case 2:
        MUST(cuMemsetD32Async(at, four_times, bytes / 4, handle));
        break;
    case 3:
        MUST(cuMemsetD2D8Async(at, bytes, (unsigned char)value, bytes, 1, handle));
        break;
    case 4:
        MUST(cuMemsetD8(at, (unsigned char)value, bytes));
        break;
    default:
        MUST(cuMemsetD32(at, four_times, bytes / 4));
    }
}

/* Fills a block that may be used in the stream. */
static void write_all(struct worker *worker, const struct block *block, int stream) {
    unsigned value = below(worker, 256);
    unsigned long long at = address(block->start), bytes = block->bytes, us;
    switch (below(worker, is_small ? 2 : 3)) {
    case 0:
        set_all(worker, at, bytes, value, stream);
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

/* By each of the driver's calls that copy. Without a stream they are in the legacy one. */
static void copy_plainly(struct worker *worker, CUdeviceptr to, CUdeviceptr from, size_t bytes,
                         int stream) {
    CUstream handle = worker->streams[stream];
    CUDA_MEMCPY2D flat = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = from,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = to,
                          .WidthInBytes = bytes,
                          .Height = 1};
    CUDA_MEMCPY3D deep = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = from,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = to,
                          .WidthInBytes = bytes,
                          .Height = 1,
                          .Depth = 1};
    worker->operations++;
    switch (below(worker, stream == LEGACY ? 5 : 4)) {
    case 0:
        MUST(cuMemcpyDtoDAsync(to, from, bytes, handle));
        break;
    case 1:
        MUST(cuMemcpyAsync(to, from, bytes, handle));
        break;
    case 2:
        MUST(cuMemcpy2DAsync(&flat, handle));
        break;
    case 3:
        MUST(cuMemcpy3DAsync(&deep, handle));
        break;
    default:
        MUST(cuMemcpyDtoD(to, from, bytes));
    }
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
    if (kind != 1) {
        copy_plainly(worker, target, source, bytes, stream);
        return;
    }
    worker->operations++;
    MUST(cuMemcpyPeerAsync(target, worker->sides[to->side].context, source,
                           worker->sides[from->side].context, bytes, worker->streams[stream]));
}

static void read_block(struct worker *worker, struct block *block) {
    bool reached = worker->peers_on || side_of(block->stream) == block->side;
    if (!reached && !has_scene("plain"))
        use(worker, block, draw_stream(worker, block->side));
    CUstream stream = use(worker, block, block->stream);
    worker->operations++;
    if (block->stream == LEGACY && below(worker, 2)) {
        MUST(cuMemcpyDtoH(worker->bytes, address(block->start), block->bytes));
    } else {
        MUST(cuMemcpyDtoHAsync(worker->bytes, address(block->start), block->bytes, stream));
        MUST(cuStreamSynchronize(stream));
    }
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
    int stream = draw_stream(worker, 0);
    follow(worker, stream, worker->flagged); /* flags are raised in order */
    worker->flagged = stream;
    enter(worker, 0);
    run(worker, stream, SET_FLAG, (void *[]){&at, &value});
}

/* ---- other work ---- */

static void stage(void *argument) {
    struct worker *worker = argument;
    memset(worker->staged, worker->staged_value, STAGED_BYTES);
}

/* A host function writes what a copy then reads. */
static void write_by_host(struct worker *worker, const struct block *block) {
    size_t bytes = block->bytes < STAGED_BYTES ? block->bytes : STAGED_BYTES;
    finish_stream(worker, worker->stager);
    worker->stager = block->stream;
    worker->staged_value = (unsigned char)below(worker, 256);
    enter(worker, side_of(block->stream));
    worker->operations += 2;
    MUST(cuLaunchHostFunc(worker->streams[block->stream], stage, worker));
    MUST(cuMemcpyHtoDAsync(address(block->start), worker->staged, bytes,
                           worker->streams[block->stream]));
}

/* The stream waits for the last flag, and writes a word. */
static void write_value(struct worker *worker, const struct block *block) {
    CUstream stream = worker->streams[block->stream];
    CUdeviceptr flag = (uintptr_t)&worker->flags[RAISED];
    CUdeviceptr at = address(block->start) + 4 * below(worker, (unsigned)(block->bytes / 4));
    unsigned value = below(worker, UINT32_MAX);
    worker->operations += 2;
    MUST(cuStreamWaitValue32(stream, flag, worker->values[RAISED], CU_STREAM_WAIT_VALUE_GEQ));
    MUST(cuStreamWriteValue32(stream, at, value, 0));
}

/* ---- waits ---- */

/* A question that is answered with "not ready" until the work is done. */
static bool is_answered(int code) {
    if (code == CUDA_ERROR_NOT_READY || (code != 0 && are_refused)) {
        sched_yield();
        return false;
    }
    MUST(code);
    return true;
}

static void wait_for(struct worker *worker, int stream, bool may_wait_for_all) {
    CUstream handle = worker->streams[stream];
    CUevent event = worker->sides[side_of(stream)].event;
    unsigned kind = below(worker, may_wait_for_all ? 8 : 4);
    enter(worker, side_of(stream));
    if (kind == 0) {
        MUST(cuStreamSynchronize(handle));
    } else if (kind == 1) {
        while (!is_answered((int)cuStreamQuery(handle)))
            ;
    } else if (kind > 3) {
        MUST(cuCtxSynchronize());
    } else {
        MUST(cuEventRecord(event, handle));
        while (kind == 2 && !is_answered((int)cuEventQuery(event)))
            ;
        MUST(cuEventSynchronize(event));
    }
}

/* A kernel that waits for the host, once the last one has seen what it waited for. */
static void close_gate(struct worker *worker, int stream) {
    unsigned long long at = (uintptr_t)&worker->flags[GATE];
    unsigned value = ++worker->values[GATE];
    enter(worker, 0);
    finish_stream(worker, worker->held);
    worker->held = stream;
    run(worker, stream, WAIT_FLAG, (void *[]){&at, &value});
}

static void open_gate(struct worker *worker) {
    __atomic_store_n(&worker->flags[GATE], worker->values[GATE], __ATOMIC_RELEASE);
}

static void finish_work(struct worker *worker) {
    for (int i = 0; i < ALL_STREAMS; i++)
        if ((i != CAPTURER || worker->open == NONE) && (i != FAR || worker->sides[1].context))
            finish_stream(worker, i);
}

/* ---- what a context has ---- */

static CUstream fresh_stream(struct worker *worker, int stream) {
    CUstream fresh;
    unsigned flags = stream == BLOCKING ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
    if (below(worker, 4))
        MUST(cuStreamCreate(&fresh, flags));
    else
        MUST(cuStreamCreateWithPriority(&fresh, flags, -(int)below(worker, 2)));
    return fresh;
}

/* The legacy stream has two names. */
static CUstream open_stream(struct worker *worker, int stream) {
    if (stream == LEGACY)
        return below(worker, 2) ? CU_STREAM_LEGACY : NULL;
    return stream == OWN ? CU_STREAM_PER_THREAD : fresh_stream(worker, stream);
}

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
        worker->streams[i] = open_stream(worker, i);
    if (side)
        return;
    MUST(cuMemHostAlloc(&flags, FLAGS * sizeof(uint32_t), CU_MEMHOSTALLOC_DEVICEMAP));
    worker->flags = flags;
    memset(flags, 0, FLAGS * sizeof(uint32_t));
    memset(worker->values, 0, sizeof worker->values);
    MUST(cuMemHostAlloc(&flags, STAGED_BYTES, 0));
    worker->staged = flags;
    worker->held = worker->flagged = worker->stager = 0;
    worker->open = NONE;
}

#endif
