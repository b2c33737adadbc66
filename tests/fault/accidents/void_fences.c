/*
 * Frees that the driver refuses say nothing about those before them: a kernel still writes a block
 * that was freed, then a free is refused in each of several ways; a block that is allocated after
 * that, and written in another stream at once, is left alone by the kernel.
 */
#include <semaphore.h>

#include "tests/conformance/gpu.h"

enum { ROUNDS = 4, WARM = 96, SLOW_MS = 60 };

static const size_t bytes = 8 * MIB, little = 64 * KIB;

static CUstream busy, idle;
static sem_t opened, looked;
static void *kept;
static pthread_t holder;

/* How blocks are freed: by a fence over the context in the lazy modes, or by the stream's event. */
static int free_plainly(void *block, CUstream unused) {
    (void)unused;
    return release(block);
}

static int (*free_block)(void *block, CUstream stream);

/* The library has seen many fences complete, and looks at several at once. */
static void warm_up(int times) {
    for (int i = 0; i < times; i++) {
        MUST(free_block(new_block(little), idle));
        MUST(synchronize());
    }
}

/* ---- ways to be refused ---- */

static void *hold_open(void *context) {
    MUST(cuCtxSetCurrent(context));
    CUstream stream = new_stream();
    MUST(begin_capture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    say("a wait for a stream that captures", (int)cuStreamSynchronize(stream));
    sem_post(&opened);
    sem_wait(&looked);
    MUST(end_stream(stream));
    return NULL;
}

/* Another thread's invalidated capture is still open when one of this thread has ended. */
static void free_beside_capture(void) {
    CUgraph graph = NULL;
    CUcontext context;
    MUST(cuCtxGetCurrent(&context));
    pthread_create(&holder, NULL, hold_open, context);
    sem_wait(&opened);
    MUST(begin_capture(idle, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(end_capture(idle, &graph));
    MUST(cuGraphDestroy(graph));
    say("free beside an open capture", free_block(kept, idle));
}

static void close_capture(void) {
    sem_post(&looked);
    pthread_join(holder, NULL);
}

static void call_back(void *block) {
    say("free in a host function", release(block));
}

static void free_in_callback(void) {
    MUST(cuLaunchHostFunc(idle, call_back, kept));
    MUST(cuStreamSynchronize(idle));
}

static void free_kept(void) {
    MUST(release(kept));
}

/* ---- the question ---- */

/* The new block is kept, so that the next look has no other place for its own. */
static void look(const char *what, int round, void (*refuse)(void), void (*after)(void)) {
    size_t free_bytes, total;
    puts(what);
    void *old = new_block(bytes);
    kept = new_block(little);
    warm_up(WARM + round);
    slow_fill(busy, old, bytes, 1, SLOW_MS);
    MUST(free_block(old, busy));
    refuse();
    MUST(memory_info(&free_bytes, &total)); /* looks at fences, too */
    void *fresh = new_block(bytes);
    fill(idle, fresh, bytes, 2);
    after();
    MUST(synchronize());
    tell("the new block is intact", holds(fresh, bytes, 2));
}

int main(void) {
    use_device(0);
    sem_init(&opened, 0, 0);
    sem_init(&looked, 0, 0);
    kernel("fill");
    busy = new_stream();
    idle = new_stream();
    for (int round = 0; round < ROUNDS; round++) {
        free_block = round % 2 ? release_async : free_plainly;
        look("an open capture", round, free_beside_capture, close_capture);
        look("a host function", round, free_in_callback, free_kept);
    }
    return 0;
}
