/*
 * A random program, drawn from a seed: threads with streams and contexts of their own, which
 * allocate, fill, add, copy, capture, pass blocks to each other and free them with work under way.
 * Many have two sides, the thread's usual context and one on another device: blocks of one side are
 * used from the other's stream (with peer access on, also by kernels), and contexts are lost with
 * blocks in them. It prints one digest a thread of all the bytes that it read, and of the codes of
 * calls that are to fail.
 *
 * What a seed computes does not depend on timing: a block is used in the order of the program's
 * text, since work in another stream first waits for the block's last use; nothing is read that was
 * not written; threads pass blocks, switch peer access and lose contexts only at barriers; a block
 * is freed only once its last use is work of its own device, which is what a free waits for. So two
 * runs of a seed print the same, unless a block was handed out while work could still touch it.
 *
 * usage: random_program SEED [STEPS]
 */
#include "tests/conformance/gpu.h"

enum { MOST_THREADS = 4, STREAMS = 3, FAR = STREAMS, BLOCKS = 12, ROUND = 40 };

struct block {
    void *start;
    size_t bytes; /* a multiple of 4 */
    int stream;   /* that used it last */
    int side;     /* whose memory it is */
};

struct worker {
    unsigned index;
    uint64_t state, digest;
    CUcontext own;             /* NULL: the primary one */
    CUcontext sides[2];        /* the usual context, and that of another device */
    CUstream streams[FAR + 1]; /* the last one is the other device's */
    CUevent events[2];         /* of each side */
    bool peers_on;             /* kernels of each side reach the other's memory */
    struct block blocks[BLOCKS];
    unsigned count;
};

static uint64_t seed;
static unsigned steps = 240, thread_count;
static bool share;     /* threads have one context, and pass blocks */
static bool has_far;   /* there is another device to use */
static bool has_peers; /* and the two can reach each other's memory */
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

static int side_of(int stream) {
    return stream == FAR;
}

static void enter(struct worker *worker, int side) {
    MUST(cuCtxSetCurrent(worker->sides[side]));
}

/* Later work of stream `to` comes after earlier work of stream `from`. */
static void follow(struct worker *worker, int to, int from) {
    if (to == from)
        return;
    CUevent event = worker->events[side_of(from)];
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

/* A stream whose kernels reach the block. */
static int draw_user(struct worker *worker, const struct block *block) {
    bool other = has_far && worker->peers_on && below(worker, 3) == 0;
    return draw_stream(worker, block->side ^ other);
}

/* ---- what a program does ---- */

static void digest(struct worker *worker, unsigned value) {
    worker->digest = (worker->digest ^ value) * 1099511628211u;
}

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
    bool reached = worker->peers_on || to->side == from->side;
    if (below(worker, 2) || !reached)
        MUST(cuMemcpyDtoDAsync(target, source, bytes, stream));
    else
        MUST(launch(stream, "copy", (void *[]){&target, &source, &bytes}));
}

static void make_block(struct worker *worker) {
    if (worker->count == BLOCKS)
        return;
    struct block *block = &worker->blocks[worker->count++];
    block->bytes = draw_size(worker);
    block->side = has_far && below(worker, 4) == 0;
    enter(worker, block->side);
    block->start = new_block(block->bytes);
    block->stream = draw_stream(worker, block->side);
    write_all(worker, block, worker->streams[block->stream]);
}

/* A free waits for work of the block's own device only. */
static void bring_home(struct worker *worker, struct block *block) {
    if (side_of(block->stream) != block->side)
        add_words(worker, block, use(worker, block, draw_stream(worker, block->side)));
}

static void end_block(struct worker *worker, struct block *block) {
    bring_home(worker, block);
    if (has_far)
        enter(worker, (int)below(worker, 2)); /* frees go by pointer */
    if (below(worker, 4) == 0)
        MUST(release_async(block->start, worker->streams[block->stream]));
    else
        MUST(release(block->start));
    *block = worker->blocks[--worker->count];
}

static void read_block(struct worker *worker, struct block *block) {
    CUstream stream = use(worker, block, block->stream);
    unsigned char *bytes = malloc(block->bytes);
    MUST(cuMemcpyDtoHAsync(bytes, address(block->start), block->bytes, stream));
    MUST(cuStreamSynchronize(stream));
    for (size_t i = 0; i < block->bytes; i++)
        digest(worker, bytes[i]);
    free(bytes);
}

/* ---- captures ---- */

static CUstreamCaptureMode draw_mode(struct worker *worker) {
    static const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                                CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                                CU_STREAM_CAPTURE_MODE_RELAXED};
    return modes[below(worker, 3)];
}

/* Allocates and frees while the thread captures, as a relaxed thread may in any mode. */
static void replace_block(struct worker *worker, struct block *block, struct block *fresh) {
    struct block *victim = any(worker);
    if (victim != block && side_of(victim->stream) == victim->side) {
        MUST(release(victim->start));
        *victim = *fresh;
    } else {
        worker->blocks[worker->count++] = *fresh;
    }
}

/* Work on one block becomes a graph; blocks are allocated and freed meanwhile. */
static void capture(struct worker *worker, struct block *block) {
    CUgraph graph;
    CUgraphExec ready;
    if (block->side != 0 || worker->count == BLOCKS)
        return;
    int stream = (int)below(worker, STREAMS);
    CUstream captured = use(worker, block, stream);
    MUST(begin_capture(captured, draw_mode(worker)));
    struct block fresh = {.bytes = draw_size(worker), .stream = stream};
    fresh.start = new_block(fresh.bytes);
    add_words(worker, block, captured);
    write_all(worker, &fresh, captured);
    add_words(worker, &fresh, captured);
    replace_block(worker, block, &fresh);
    MUST(end_capture(captured, &graph));
    MUST(cuGraphInstantiateWithFlags(&ready, graph, 0));
    for (unsigned i = 0; i <= below(worker, 2); i++)
        MUST(cuGraphLaunch(ready, captured));
    MUST(cuGraphExecDestroy(ready));
    MUST(cuGraphDestroy(graph));
}

/* An allocation or a free that the thread's own capture bars: it fails, and the capture with it. */
static void break_capture(struct worker *worker, struct block *block) {
    void *unwanted = NULL;
    CUgraph graph = NULL;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    bring_home(worker, block);
    enter(worker, 0);
    CUstream captured = worker->streams[below(worker, STREAMS)];
    MUST(begin_capture(captured, below(worker, 2) ? CU_STREAM_CAPTURE_MODE_GLOBAL
                                                  : CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    MUST(cuThreadExchangeStreamCaptureMode(&mode));
    if (below(worker, 2))
        digest(worker, (unsigned)allocate(&unwanted, draw_size(worker)));
    else
        digest(worker, (unsigned)release(block->start));
    digest(worker, (unsigned)end_capture(captured, &graph));
    MUST(cuThreadExchangeStreamCaptureMode(&mode));
}

/* ---- streams and contexts ---- */

static void open_side(struct worker *worker, int side) {
    enter(worker, side);
    kernel("fill");
    for (int i = side ? FAR : 0; i <= (side ? FAR : STREAMS - 1); i++)
        worker->streams[i] = new_stream();
    MUST(cuEventCreate(&worker->events[side], CU_EVENT_DISABLE_TIMING));
}

static int own_device(const struct worker *worker) {
    return share ? 0 : (int)(worker->index % 2) % device_count();
}

/* The contexts of the sides in `mask`. */
static void open_contexts(struct worker *worker, unsigned mask) {
    if (mask & 2) {
        use_device(1 - own_device(worker));
        MUST(cuCtxGetCurrent(&worker->sides[1]));
    }
    if (!(mask & 1))
        return;
    use_device(0);
    if (!share)
        MUST(CREATE_CONTEXT(&worker->own, own_device(worker)));
    MUST(cuCtxGetCurrent(&worker->sides[0]));
}

static void open_worker(struct worker *worker) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    MUST(cuThreadExchangeStreamCaptureMode(&mode));
    open_contexts(worker, has_far ? 3 : 1);
    for (int side = 0; side <= has_far; side++)
        open_side(worker, side);
}

static void finish_work(struct worker *worker) {
    for (int i = 0; i < STREAMS + has_far; i++)
        MUST(cuStreamSynchronize(worker->streams[i]));
}

/* A stream may be destroyed with work under way; another one takes its place. */
static void change_stream(struct worker *worker) {
    int stream = (int)below(worker, (unsigned)(STREAMS + has_far)), side = side_of(stream);
    enter(worker, side);
    CUstream fresh = new_stream();
    MUST(cuEventRecord(worker->events[side], worker->streams[stream]));
    MUST(cuStreamWaitEvent(fresh, worker->events[side], 0));
    MUST(cuStreamDestroy(worker->streams[stream]));
    worker->streams[stream] = fresh;
}

static void switch_peers(struct worker *worker, bool on) {
    for (int side = 0; side < 2; side++) {
        enter(worker, side);
        if (on)
            MUST(cuCtxEnablePeerAccess(worker->sides[1 - side], 0));
        else
            MUST(cuCtxDisablePeerAccess(worker->sides[1 - side]));
    }
}

/* One thread switches for all that have the same contexts, while nothing is under way. */
static void change_peers(struct worker *worker) {
    finish_work(worker);
    pthread_barrier_wait(&barrier);
    if (!share || worker->index == 0)
        switch_peers(worker, !worker->peers_on);
    worker->peers_on = !worker->peers_on;
    pthread_barrier_wait(&barrier);
}

/* Frees what went with its context: that fails. Where to others last used blocks is over, too. */
static void free_lost(struct worker *worker, unsigned mask) {
    for (unsigned i = worker->count; i-- > 0;) {
        struct block *block = &worker->blocks[i];
        block->stream = block->side ? FAR : 0;
        if (!(mask >> block->side & 1))
            continue;
        digest(worker, (unsigned)release(block->start));
        *block = worker->blocks[--worker->count];
    }
}

/* The contexts of the sides in `mask` end with blocks in them; new ones take their place. */
static void lose_contexts(struct worker *worker, unsigned mask) {
    finish_work(worker);
    pthread_barrier_wait(&barrier);
    if (!share)
        MUST(cuCtxDestroy(worker->own));
    for (int device = 0; share && worker->index == 0 && device < 2; device++)
        if (mask >> device & 1)
            MUST(cuDevicePrimaryCtxReset(device));
    pthread_barrier_wait(&barrier);
    open_contexts(worker, mask);
    worker->peers_on = false;
    free_lost(worker, mask);
    pthread_barrier_wait(&barrier);
    for (int side = 0; side < 2; side++)
        if (mask >> side & 1)
            open_side(worker, side);
}

/* ---- threads ---- */

/* Gives a block to the next thread, which goes on with it where its last use ended. */
static void pass_block(struct worker *worker) {
    struct block *given = share ? any(worker) : NULL;
    mailbox[worker->index] = (struct block){0};
    if (given) {
        MUST(cuStreamSynchronize(worker->streams[given->stream]));
        slow_fill(use(worker, given, given->side ? FAR : given->stream % STREAMS), given->start,
                  given->bytes, below(worker, 256), 1);
        mailbox[worker->index] = *given;
        *given = worker->blocks[--worker->count];
    }
    pthread_barrier_wait(&barrier);
    struct worker *giver = &workers[(worker->index + 1) % thread_count];
    struct block taken = mailbox[giver->index];
    if (taken.start) {
        CUevent event = worker->events[taken.side];
        int stream = taken.side ? FAR : 0;
        MUST(cuEventRecord(event, giver->streams[taken.stream]));
        MUST(cuStreamWaitEvent(worker->streams[stream], event, 0));
        taken.stream = stream;
        if (worker->count < BLOCKS)
            worker->blocks[worker->count++] = taken;
        else
            MUST(release(taken.start));
    }
    pthread_barrier_wait(&barrier);
}

/* What all threads do together between rounds is drawn for all of them. */
static void meet(struct worker *worker, unsigned round) {
    uint64_t state = seed * 7919 + round;
    unsigned kind = (unsigned)(draw(&state) % 6);
    unsigned mask = share && has_far ? 1 + (unsigned)(draw(&state) % 3) : 1;
    if (kind == 0)
        lose_contexts(worker, mask);
    else if (kind < 3 && has_peers)
        change_peers(worker);
    else
        pass_block(worker);
}

static void work_on(struct worker *worker, struct block *block, struct block *other) {
    unsigned kind = below(worker, 48);
    if (kind < 10)
        write_all(worker, block, use(worker, block, draw_user(worker, block)));
    else if (kind < 22)
        add_words(worker, block, use(worker, block, draw_user(worker, block)));
    else if (kind < 34 && block != other) {
        int stream = draw_user(worker, block);
        use(worker, other, stream);
        copy_between(worker, block, other, use(worker, block, stream));
    } else if (kind < 40)
        read_block(worker, block);
    else if (kind < 45)
        capture(worker, block);
    else if (kind < 46)
        break_capture(worker, block);
    else
        MUST(cuStreamSynchronize(worker->streams[block->stream]));
}

static void step(struct worker *worker) {
    struct block *block = any(worker), *other = any(worker);
    unsigned kind = below(worker, 100);
    if (!block || kind < 28)
        make_block(worker);
    else if (kind < 52)
        end_block(worker, block);
    else
        work_on(worker, block, other);
}

static void *work(void *argument) {
    struct worker *worker = argument;
    open_worker(worker);
    for (unsigned i = 0; i < steps; i++) {
        step(worker);
        if (i % ROUND == ROUND - 1) {
            meet(worker, i / ROUND);
            change_stream(worker);
        }
    }
    while (worker->count) {
        read_block(worker, &worker->blocks[0]);
        end_block(worker, &worker->blocks[0]);
    }
    enter(worker, 0);
    for (int i = 0; i < 3 && worker->own; i++)
        new_block((size_t)1000 << i); /* ends with its context */
    finish_work(worker);
    pthread_barrier_wait(&barrier);
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
    has_far = draw(&state) % 2 && device_count() > 1;
    for (int device = 0; has_far && device < 2; device++) {
        int can = 0;
        MUST(cuDeviceCanAccessPeer(&can, device, 1 - device));
        has_peers = can && (device == 0 || has_peers);
    }
    use_device(0);
    pthread_barrier_init(&barrier, NULL, thread_count);
    for (unsigned i = 0; i < thread_count; i++) {
        workers[i] = (struct worker){.index = i, .state = seed * 1000 + i, .digest = 1469598103u};
        pthread_create(&threads[i], NULL, work, &workers[i]);
    }
    for (unsigned i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < thread_count; i++)
        printf("thread %u: %016llx\n", i, (unsigned long long)workers[i].digest);
    return 0;
}
