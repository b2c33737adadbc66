/*
 * Loops with something beside them, each checked for its contents:
 *
 *   [TURN=1] [STAY=1] scenes plain | threads | contexts | ends | fork | capture | devices | trimmed
 *                                 | left | relay | at-once | together
 *
 * plain: one loop. threads: two at once, of different sizes. contexts: one in each of two contexts
 * of a device. ends: the context ends in the middle, and another one goes on. fork: children come
 * and go. capture: every third round is played while a stream captures. devices: a thread with one
 * device and one with two, which plays first with TURN. trimmed: with TURN the pool is given back
 * in the middle, and a thread that is in no plan has the address. left: with TURN more is
 * asked for than lies on either side of what is in use. relay: a thread, with TURN several one
 * after the other. at-once: a context, with TURN several that begin at the same time. together: a
 * thread, with TURN several that make the first allocation of one context at once. With STAY it
 * waits for its input's end. (Not arguments, since a plan is of a program with its arguments.)
 */
#define BFCPRELOAD_WEAK

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interpose/api/bfcpreload.h"
#include "tests/integration/interpose/program.h"

enum { SIZES = 12, ROUNDS = 12, LIVE = 4 };

struct loop {
    CUcontext context;
    size_t unit; /* bytes */
    unsigned seed;
};

struct block {
    CUdeviceptr address;
    size_t bytes;
    unsigned char mark;
};

static void allocate(struct block *block, size_t bytes, unsigned char mark) {
    *block = (struct block){.bytes = bytes, .mark = mark};
    CHECK(cuMemAlloc(&block->address, bytes));
    CHECK(cuMemsetD8(block->address, mark, bytes));
}

static void release(struct block *block) {
    unsigned char seen[2];
    if (!block->bytes)
        return;
    CHECK(cuMemcpyDtoH(&seen[0], block->address, 1));
    CHECK(cuMemcpyDtoH(&seen[1], block->address + block->bytes - 1, 1));
    if (seen[0] != block->mark || seen[1] != block->mark) {
        printf("a block of %zu bytes was overwritten\n", block->bytes);
        exit(1);
    }
    CHECK(cuMemFree(block->address));
    block->bytes = 0;
}

/* A few blocks live at a time, and the last is freed in the next round. */
static void play_round(const struct loop *loop, struct block live[LIVE]) {
    for (unsigned i = 0; i < SIZES; i++) {
        struct block *block = &live[i % LIVE];
        release(block);
        allocate(block, loop->unit * (1 + (i * i + loop->seed) % 7),
                 (unsigned char)(loop->seed * 16 + i));
    }
}

static void *play(void *argument) {
    const struct loop *loop = argument;
    struct block live[LIVE] = {{.bytes = 0}};
    CHECK(cuCtxSetCurrent(loop->context));
    for (int round = 0; round < ROUNDS; round++)
        play_round(loop, live);
    for (int i = 0; i < LIVE; i++)
        release(&live[i]);
    return NULL;
}

static CUcontext new_context(void) {
    CUcontext context;
    CHECK(cuCtxCreate(&context, NULL, 0, 0));
    return context;
}

static void play_threads(CUcontext first, CUcontext second) {
    struct loop loops[2] = {{first, 70000, 1}, {second, 3000, 2}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, play, &loops[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void play_ends(void) {
    for (int i = 0; i < 3; i++) {
        struct loop loop = {new_context(), 70000, 1};
        play(&loop);
        CHECK(cuCtxDestroy(loop.context));
    }
}

static void play_fork(struct loop *loop) {
    struct block live[LIVE] = {{.bytes = 0}};
    for (int round = 0; round < ROUNDS; round++) {
        CUdeviceptr none;
        play_round(loop, live);
        pid_t child = fork();
        if (child == 0)
            _exit(cuMemAlloc(&none, 70000) == CUDA_SUCCESS ? 1 : 0);
        int status = 1;
        waitpid(child, &status, 0);
    }
    for (int i = 0; i < LIVE; i++)
        release(&live[i]);
}

/* Allocations and frees alone: copies would be captured, or forbidden. */
static void play_capture(void) {
    CUstream stream;
    CUgraph graph;
    CUdeviceptr held[SIZES];
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int round = 0; round < ROUNDS; round++) {
        bool captures = round % 3 == 2;
        if (captures)
            CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        for (size_t i = 0; i < SIZES; i++)
            CHECK(cuMemAlloc(&held[i], 70000 * (1 + i % 5)));
        for (size_t i = 0; i < SIZES; i++)
            CHECK(cuMemFree(held[i]));
        if (captures) {
            CHECK(cuStreamEndCapture(stream, &graph));
            CHECK(cuGraphDestroy(graph));
        }
    }
}

static void play_sizes(CUcontext context, const size_t *sizes, int count) {
    CUdeviceptr held[8];
    CHECK(cuCtxSetCurrent(context));
    for (int i = 0; i < count; i++)
        CHECK(cuMemAlloc(&held[i], sizes[i] << 16));
    for (int i = 0; i < count; i++)
        CHECK(cuMemFree(held[i]));
}

static const size_t of_one[] = {2, 3, 4, 5, 6, 7}, of_two[] = {9, 10, 11, 12, 13, 14};

static void *play_one(void *contexts) {
    CUcontext *context = contexts;
    for (int round = 0; round < ROUNDS; round++)
        play_sizes(context[0], of_one, 6);
    return NULL;
}

/* After the first round on both devices it does what the other thread does, once. */
static void *play_two(void *contexts) {
    CUcontext *context = contexts;
    for (int round = 0; round < ROUNDS; round++) {
        play_sizes(context[0], of_two, 6);
        play_sizes(context[1], of_two, 6);
        if (getenv("TURN") && round == 0)
            play_sizes(context[0], of_one, 1);
    }
    return NULL;
}

static void join_new(void *(*body)(void *), void *argument) {
    pthread_t thread;
    pthread_create(&thread, NULL, body, argument);
    pthread_join(thread, NULL);
}

static void play_devices(CUcontext first) {
    CUcontext contexts[2] = {first};
    CHECK(cuDevicePrimaryCtxRetain(&contexts[1], 1));
    bool turned = getenv("TURN");
    join_new(turned ? play_two : play_one, contexts);
    join_new(turned ? play_one : play_two, contexts);
}

static void *take_a_little(void *contexts) {
    static CUdeviceptr kept;
    CHECK(cuCtxSetCurrent(*(CUcontext *)contexts));
    CHECK(cuMemAlloc(&kept, 999 << 10));
    return NULL;
}

static void play_large(CUcontext context) {
    static const size_t sizes[] = {301, 302, 303, 304, 305, 306};
    for (int round = 0; round < ROUNDS; round++)
        play_sizes(context, sizes, 6);
}

static void play_trimmed(CUcontext context) {
    play_large(context);
    if (getenv("TURN")) {
        bfc_trim(SIZE_MAX);
        join_new(take_a_little, &context);
    }
    play_large(context);
}

/* Pages of a part of the plan's memory go. */
static void play_trimmed_in_part(CUcontext context) {
    play_large(context);
    if (getenv("TURN"))
        bfc_trim((size_t)20 << 20);
    play_large(context);
}

static void play_left(CUcontext context) {
    CUdeviceptr kept, most;
    play_large(context);
    CHECK(cuMemAlloc(&kept, (size_t)301 << 16));
    if (!getenv("TURN"))
        CHECK(cuMemFree(kept));
    else if (cuMemAlloc(&most, (size_t)220 << 20) == CUDA_ERROR_OUT_OF_MEMORY)
        puts("out of memory");
}

static void *run_leg(void *contexts) {
    CUcontext *context = contexts;
    for (int round = 0; round < (getenv("TURN") ? ROUNDS / 4 : ROUNDS); round++)
        play_sizes(context[0], of_one, 6);
    return NULL;
}

static void play_relay(CUcontext context) {
    for (int leg = 0; leg < (getenv("TURN") ? 4 : 1); leg++)
        join_new(run_leg, &context);
}

enum { CONTEXTS = 4 };
static pthread_barrier_t start;

static void *begin_with_others(void *context) {
    pthread_barrier_wait(&start);
    return run_leg(context);
}

/* Each in a context of its own, or all in this one. */
static void play_at_once(CUcontext shared) {
    unsigned count = getenv("TURN") ? CONTEXTS : 1;
    CUcontext contexts[CONTEXTS];
    pthread_t threads[CONTEXTS];
    pthread_barrier_init(&start, NULL, count);
    for (unsigned i = 0; i < count; i++)
        contexts[i] = shared ? shared : new_context();
    for (unsigned i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, begin_with_others, &contexts[i]);
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

int main(int arguments, char **argument) {
    const char *scene = arguments == 2 ? argument[1] : "";
    struct loop loop = {.unit = 70000, .seed = 1};
    loop.context = use_primary(0);
    if (strcmp(scene, "plain") == 0)
        play(&loop);
    else if (strcmp(scene, "threads") == 0)
        play_threads(loop.context, loop.context);
    else if (strcmp(scene, "contexts") == 0)
        play_threads(loop.context, new_context());
    else if (strcmp(scene, "ends") == 0)
        play_ends();
    else if (strcmp(scene, "fork") == 0)
        play_fork(&loop);
    else if (strcmp(scene, "capture") == 0)
        play_capture();
    else if (strcmp(scene, "devices") == 0)
        play_devices(loop.context);
    else if (strcmp(scene, "trimmed") == 0)
        play_trimmed(loop.context);
    else if (strcmp(scene, "trimmed-in-part") == 0)
        play_trimmed_in_part(loop.context);
    else if (strcmp(scene, "left") == 0)
        play_left(loop.context);
    else if (strcmp(scene, "relay") == 0)
        play_relay(loop.context);
    else if (strcmp(scene, "at-once") == 0)
        play_at_once(NULL);
    else if (strcmp(scene, "together") == 0)
        play_at_once(loop.context);
    else
        return 2;
    puts("done");
    fflush(stdout);
    if (getenv("STAY"))
        getchar();
    return 0;
}
