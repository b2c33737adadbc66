/*
 * An invalidated capture that is left open bars what it barred before, and no more [D]: in each
 * mode, left open by this thread or by another one, while one more capture comes and goes.
 */
#include <semaphore.h>

#include "tests/conformance/gpu.h"

static const size_t bytes = 2 * MIB, more = 64 * MIB;

static CUstreamCaptureMode mode;
static CUstream capturing, busy, idle;
static sem_t opened, looked;

static void open_capture(void) {
    MUST(begin_capture(capturing, mode));
    say("  a wait for the stream", (int)DRIVER(cuStreamSynchronize)(capturing));
}

static void close_capture(void) {
    CUgraph graph = NULL;
    say("  end", end_capture(capturing, &graph));
}

static void capture_and_end(void) {
    CUgraph graph = NULL;
    MUST(begin_capture(idle, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(end_capture(idle, &graph));
    MUST(DRIVER(cuGraphDestroy)(graph));
}

struct blocks {
    void *old, *fresh, *large;
};

/* One block is still written when it is freed, and one of its size is taken at once. */
static void look(struct blocks *blocks) {
    slow_fill(busy, blocks->old, bytes, 1, 25);
    int code = release(blocks->old);
    say("  free", code);
    if (code == 0)
        blocks->old = NULL;
    say("  malloc", allocate(&blocks->fresh, bytes));
    if (blocks->fresh)
        fill(idle, blocks->fresh, bytes, 2);
    say("  malloc of more", allocate(&blocks->large, more));
}

static void look_afterwards(struct blocks *blocks) {
    MUST(synchronize());
    if (blocks->fresh)
        tell("  the new block is intact", holds(blocks->fresh, bytes, 2));
    void *all[] = {blocks->old, blocks->fresh, blocks->large};
    for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i])
            say("  free", release(all[i]));
}

static void look_here(void) {
    struct blocks blocks = {.old = new_block(bytes)};
    puts(" of this thread");
    open_capture();
    capture_and_end();
    look(&blocks);
    close_capture();
    look_afterwards(&blocks);
}

static void *hold_open(void *unused) {
    choose_device(0);
    open_capture();
    sem_post(&opened);
    sem_wait(&looked);
    close_capture();
    return unused;
}

static void look_beside(void) {
    pthread_t thread;
    struct blocks blocks = {.old = new_block(bytes)};
    puts(" of another thread");
    pthread_create(&thread, NULL, hold_open, NULL);
    sem_wait(&opened);
    capture_and_end();
    look(&blocks);
    sem_post(&looked);
    pthread_join(thread, NULL);
    look_afterwards(&blocks);
}

static void look_at(const char *name, CUstreamCaptureMode of) {
    puts(name);
    mode = of;
    look_here();
    look_beside();
}

int main(void) {
    use_device(0);
    sem_init(&opened, 0, 0);
    sem_init(&looked, 0, 0);
    kernel("fill");
    capturing = new_stream();
    busy = new_stream();
    idle = new_stream();
    look_at("global", CU_STREAM_CAPTURE_MODE_GLOBAL);
    look_at("thread-local", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    look_at("relaxed", CU_STREAM_CAPTURE_MODE_RELAXED);
    return 0;
}
