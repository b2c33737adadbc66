/*
 * A random program, drawn from a seed: threads with streams and contexts of their own, which
 * allocate, fill, add, copy, capture, pass blocks to each other and free them with work under way.
 * It prints one digest a thread of all the bytes that it read.
 *
 * What a seed computes does not depend on timing: a block is used in the order of the program's
 * text, since work in another stream first waits for the block's last use; nothing is read that was
 * not written; threads pass blocks only at barriers. So two runs of a seed print the same, unless a
 * block was handed out while work could still touch it.
 *
 * usage: random_program SEED [STEPS]
 */
#include "tests/conformance/gpu.h"

enum { MOST_THREADS = 4, STREAMS = 3, BLOCKS = 12, ROUND = 40 };

struct block {
    void *start;
    size_t bytes; /* a multiple of 4 */
    int stream;   /* that used it last */
};

struct worker {
    unsigned index;
    uint64_t state, digest;
    CUcontext own; /* NULL: the primary one */
    CUstream streams[STREAMS];
    CUevent event;
    struct block blocks[BLOCKS];
    unsigned count;
};

static uint64_t seed;
static unsigned steps = 240, thread_count;
static bool share; /* threads have one context, and pass blocks */
static pthread_barrier_t barrier;
static struct worker workers[MOST_THREADS];
static struct block mailbox[MOST_THREADS];

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

/* Mostly small, some of megabytes. */
static size_t draw_size(struct worker *worker) {
    unsigned kind = below(worker, 10);
    unsigned words = kind < 6   ? below(worker, 4000)
                     : kind < 9 ? below(worker, 60000)
                                : below(worker, 900000);
    return 4 * (size_t)(1 + words);
}

/* ---- order ---- */

/* Later work of stream `to` comes after earlier work of stream `from`. */
static void follow(struct worker *worker, int to, int from) {
    if (to == from)
        return;
    MUST(cuEventRecord(worker->event, worker->streams[from]));
    MUST(cuStreamWaitEvent(worker->streams[to], worker->event, 0));
}

/* Makes the block usable in a stream, which is its last user from now on. */
static CUstream use(struct worker *worker, struct block *block, int stream) {
    follow(worker, stream, block->stream);
    block->stream = stream;
    return worker->streams[stream];
}

/* ---- what a program does ---- */

static struct block *any(struct worker *worker) {
    return worker->count ? &worker->blocks[below(worker, worker->count)] : NULL;
}

static void write_all(struct worker *worker, struct block *block, CUstream stream) {
    unsigned value = below(worker, 256);
    switch (below(worker, 3)) {
    case 0:
        MUST(cuMemsetD8Async(address(block->start), (unsigned char)value, block->bytes, stream));
        break;
    case 1:
        fill(stream, block->start, block->bytes, value);
        break;
    default: {
        unsigned long long at = address(block->start), bytes = block->bytes,
                           us = 1 + below(worker, 1500);
        MUST(launch(stream, "slow_fill", (void *[]){&at, &bytes, &value, &us}));
    }
    }
}

static void add_words(struct worker *worker, struct block *block, CUstream stream) {
    unsigned long long at = address(block->start), words = block->bytes / 4;
    unsigned addend = below(worker, UINT32_MAX);
    MUST(launch(stream, "add", (void *[]){&at, &words, &addend}));
}

static void copy_between(struct worker *worker, struct block *to, struct block *from,
                         CUstream stream) {
    unsigned long long bytes = to->bytes < from->bytes ? to->bytes : from->bytes;
    unsigned long long target = address(to->start), source = address(from->start);
    if (below(worker, 2))
        MUST(cuMemcpyDtoDAsync(target, source, bytes, stream));
    else
        MUST(launch(stream, "copy", (void *[]){&target, &source, &bytes}));
}

static void make_block(struct worker *worker) {
    if (worker->count == BLOCKS)
        return;
    struct block *block = &worker->blocks[worker->count++];
    block->bytes = draw_size(worker);
    block->start = new_block(block->bytes);
    block->stream = (int)below(worker, STREAMS);
    write_all(worker, block, worker->streams[block->stream]);
}

static void end_block(struct worker *worker, struct block *block) {
    if (below(worker, 4) == 0)
        MUST(release_async(block->start, worker->streams[block->stream]));
    else
        MUST(release(block->start));
    *block = worker->blocks[--worker->count];
}

static void read_block(struct worker *worker, struct block *block) {
    CUstream stream = worker->streams[block->stream];
    unsigned char *bytes = malloc(block->bytes);
    MUST(cuMemcpyDtoHAsync(bytes, address(block->start), block->bytes, stream));
    MUST(cuStreamSynchronize(stream));
    for (size_t i = 0; i < block->bytes; i++)
        worker->digest = (worker->digest ^ bytes[i]) * 1099511628211u;
    free(bytes);
}

/* ---- captures ---- */

/* Work on one block becomes a graph; blocks are allocated and freed meanwhile. */
static void capture(struct worker *worker) {
    struct block *block = any(worker);
    CUgraph graph;
    CUgraphExec ready;
    if (!block || worker->count == BLOCKS)
        return;
    int stream = (int)below(worker, STREAMS);
    CUstream captured = use(worker, block, stream);
    MUST(begin_capture(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
    struct block fresh = {.bytes = draw_size(worker), .stream = stream};
    fresh.start = new_block(fresh.bytes);
    add_words(worker, block, captured);
    write_all(worker, &fresh, captured);
    add_words(worker, &fresh, captured);
    struct block *victim = any(worker);
    if (victim != block) {
        MUST(release(victim->start));
        *victim = fresh;
    } else {
        worker->blocks[worker->count++] = fresh;
    }
    MUST(end_capture(captured, &graph));
    MUST(cuGraphInstantiateWithFlags(&ready, graph, 0));
    for (unsigned i = 0; i <= below(worker, 2); i++)
        MUST(cuGraphLaunch(ready, captured));
    MUST(cuGraphExecDestroy(ready));
    MUST(cuGraphDestroy(graph));
}

/* ---- threads ---- */

/* Gives a block to the next thread, which goes on with it where its last use ended. */
static void pass_block(struct worker *worker) {
    struct block *given = share ? any(worker) : NULL;
    mailbox[worker->index] = (struct block){0};
    if (given) {
        MUST(cuStreamSynchronize(worker->streams[given->stream]));
        slow_fill(worker->streams[given->stream], given->start, given->bytes, below(worker, 256),
                  1);
        mailbox[worker->index] = *given;
        *given = worker->blocks[--worker->count];
    }
    pthread_barrier_wait(&barrier);
    struct worker *giver = &workers[(worker->index + 1) % thread_count];
    struct block taken = mailbox[giver->index];
    if (taken.start) {
        MUST(cuEventRecord(worker->event, giver->streams[taken.stream]));
        MUST(cuStreamWaitEvent(worker->streams[0], worker->event, 0));
        taken.stream = 0;
        if (worker->count < BLOCKS)
            worker->blocks[worker->count++] = taken;
        else
            MUST(release(taken.start));
    }
    pthread_barrier_wait(&barrier);
}

static void step(struct worker *worker) {
    struct block *block = any(worker), *other = any(worker);
    int stream = (int)below(worker, STREAMS);
    unsigned kind = below(worker, 100);
    if (!block || kind < 28)
        make_block(worker);
    else if (kind < 52)
        end_block(worker, block);
    else if (kind < 62)
        write_all(worker, block, use(worker, block, stream));
    else if (kind < 74)
        add_words(worker, block, use(worker, block, stream));
    else if (kind < 86 && block != other) {
        use(worker, other, stream);
        copy_between(worker, block, other, use(worker, block, stream));
    } else if (kind < 92)
        read_block(worker, block);
    else if (kind < 97)
        capture(worker);
    else
        MUST(cuStreamSynchronize(worker->streams[stream]));
}

static void open_worker(struct worker *worker) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    MUST(cuThreadExchangeStreamCaptureMode(&mode));
    use_device(0);
    if (worker->own)
        MUST(cuCtxSetCurrent(worker->own));
    kernel("fill");
    for (int i = 0; i < STREAMS; i++)
        worker->streams[i] = new_stream();
    MUST(cuEventCreate(&worker->event, CU_EVENT_DISABLE_TIMING));
}

/* A stream may be destroyed with work under way; another one takes its place. */
static void change_stream(struct worker *worker) {
    int stream = (int)below(worker, STREAMS);
    CUstream fresh = new_stream();
    MUST(cuEventRecord(worker->event, worker->streams[stream]));
    MUST(cuStreamWaitEvent(fresh, worker->event, 0));
    MUST(cuStreamDestroy(worker->streams[stream]));
    worker->streams[stream] = fresh;
}

static void *work(void *argument) {
    struct worker *worker = argument;
    open_worker(worker);
    for (unsigned i = 0; i < steps; i++) {
        step(worker);
        if (i % ROUND == ROUND - 1) {
            pass_block(worker);
            change_stream(worker);
        }
    }
    while (worker->count) {
        read_block(worker, &worker->blocks[0]);
        end_block(worker, &worker->blocks[0]);
    }
    return NULL;
}

static void *work_in_own(void *argument) {
    struct worker *worker = argument;
    use_device(0);
    if (!share)
        MUST(CREATE_CONTEXT(&worker->own, (int)(worker->index % 2) % device_count()));
    work(worker);
    for (int i = 0; i < 3 && worker->own; i++)
        new_block((size_t)1000 << i); /* ends with its context */
    if (worker->own)
        MUST(cuCtxDestroy(worker->own));
    return NULL;
}

int main(int count, char **arguments) {
    pthread_t threads[MOST_THREADS];
    if (count < 2) {
        fprintf(stderr, "usage: random_program SEED [STEPS]\n");
        return 2;
    }
    seed = strtoull(arguments[1], NULL, 10);
    if (count > 2)
        steps = (unsigned)strtoul(arguments[2], NULL, 10);
    uint64_t state = seed;
    thread_count = 1 + (unsigned)(draw(&state) % MOST_THREADS);
    share = draw(&state) % 3 != 0;
    use_device(0);
    pthread_barrier_init(&barrier, NULL, thread_count);
    for (unsigned i = 0; i < thread_count; i++) {
        workers[i] = (struct worker){.index = i, .state = seed * 1000 + i, .digest = 1469598103u};
        pthread_create(&threads[i], NULL, work_in_own, &workers[i]);
    }
    for (unsigned i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < thread_count; i++)
        printf("thread %u: %016llx\n", i, (unsigned long long)workers[i].digest);
    return 0;
}
