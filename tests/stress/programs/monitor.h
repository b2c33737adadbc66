/*
 * A thread beside the others, as monitors are: it asks how much memory is free and what pointers
 * are, in every context that there is, and has a small block of its own now and then.
 */
#ifndef BFC_TESTS_STRESS_MONITOR_H
#define BFC_TESTS_STRESS_MONITOR_H

#include <sched.h>

#include "tests/stress/programs/worker.h"

enum { MOST_WATCHED = 8 };

/* The contexts that it may enter: each is taken off before it ends. */
static struct {
    pthread_mutex_t lock;
    pthread_t thread;
    CUcontext contexts[MOST_WATCHED];
    unsigned calms; /* threads for which it has no block now: they lose contexts, whose addresses it
                       would take, or need all of a device */
    bool is_over;
} watched = {.lock = PTHREAD_MUTEX_INITIALIZER};

static CUdeviceptr last_seen; /* an address that a thread had, for questions about it */

static void watch(unsigned index, CUcontext context) {
    pthread_mutex_lock(&watched.lock);
    watched.contexts[index] = context;
    pthread_mutex_unlock(&watched.lock);
}

static void begin_calm(void) {
    pthread_mutex_lock(&watched.lock);
    watched.calms++;
    pthread_mutex_unlock(&watched.lock);
}

static void end_calm(void) {
    pthread_mutex_lock(&watched.lock);
    watched.calms--;
    pthread_mutex_unlock(&watched.lock);
}

static void look_at_memory(void) {
    size_t free_bytes = 0, total = 0, size;
    unsigned long long id;
    CUdeviceptr start, at = __atomic_load_n(&last_seen, __ATOMIC_RELAXED);
    MUST(cuMemGetInfo(&free_bytes, &total));
    if (free_bytes > total)
        wrong("more memory is free than there is");
    /* It may be freed meanwhile, so the answers are any. */
    cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, at);
    cuMemGetAddressRange(&start, &size, at);
}

static void have_block(struct worker *monitor) {
    unsigned char bytes[4096], value = (unsigned char)below(monitor, 256);
    void *start = NULL;
    size_t size = 1 + below(monitor, sizeof bytes);
    MUST(allocate(&start, size));
    MUST(cuMemsetD8(address(start), value, size));
    MUST(cuMemcpyDtoH(bytes, address(start), size));
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != value)
            wrong("the monitor's bytes are another's");
    MUST(release(start));
}

static void look_once(struct worker *monitor) {
    pthread_mutex_lock(&watched.lock);
    CUcontext context = watched.contexts[below(monitor, MOST_WATCHED)];
    if (context) {
        MUST(cuCtxSetCurrent(context));
        look_at_memory();
        if (watched.calms == 0 && below(monitor, 8) == 0)
            have_block(monitor);
        MUST(cuCtxSetCurrent(NULL));
    }
    pthread_mutex_unlock(&watched.lock);
}

/* At its best the thread does nothing else; that makes the others slow. */
static void *keep_looking(void *argument) {
    struct worker monitor = {.state = *(uint64_t *)argument};
    bool is_eager = below(&monitor, 4) == 0;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    MUST(cuThreadExchangeStreamCaptureMode(&mode));
    while (!__atomic_load_n(&watched.is_over, __ATOMIC_ACQUIRE)) {
        look_once(&monitor);
        if (is_eager)
            sched_yield();
        else
            usleep(below(&monitor, 1000));
    }
    return NULL;
}

static void start_monitor(uint64_t *state) {
    pthread_create(&watched.thread, NULL, keep_looking, state);
}

static void end_monitor(void) {
    __atomic_store_n(&watched.is_over, true, __ATOMIC_RELEASE);
    pthread_join(watched.thread, NULL);
}

#endif
