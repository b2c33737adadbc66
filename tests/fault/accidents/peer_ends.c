/*
 * Contexts with access to a block's memory come and go, with work under way, while their owner's
 * thread frees and allocates: every call of it succeeds, no block is touched by what a peer did to
 * its place before, and no call of ours uses an event of a peer whose end has begun [D]
 * (cuCtxDestroy).
 */
#include <stdatomic.h>

#include "tests/conformance/helper.h"

enum { ROUNDS = 40, SLOW_MS = 4, WATCH_US = 200 };

static const size_t bytes = 1 * MIB;

static CUcontext owner;
static atomic_bool done;
static atomic_uint failed, touched;

static void *churn(void *unused) {
    MUST(cuCtxSetCurrent(owner));
    CUstream stream = new_stream();
    while (!done) {
        void *block = NULL;
        failed += allocate(&block, bytes) != 0;
        fill(stream, block, bytes, 7);
        MUST(cuStreamSynchronize(stream));
        touched += !holds(block, bytes, 7);
        failed += release(block) != 0;
    }
    return unused;
}

/* This looks at fences, too, whatever the device is busy with. */
static void *watch(void *unused) {
    size_t free_bytes, total;
    MUST(cuCtxSetCurrent(owner));
    while (!done) {
        failed += memory_info(&free_bytes, &total) != 0;
        usleep(WATCH_US);
    }
    return unused;
}

/* It ends with its work. */
static void come_and_go(void) {
    CUcontext peer, popped;
    MUST(CREATE_CONTEXT(&peer, 1));
    MUST(cuCtxEnablePeerAccess(owner, 0));
    kernel("spin");
    CUstream stream = NULL;
    for (int i = 0; i < 3; i++)
        spin(stream = new_stream(), SLOW_MS);
    MUST(cuCtxPopCurrent(&popped));
    MUST(release_async(new_block(bytes), stream));
    MUST(cuCtxDestroy(peer));
}

int main(void) {
    pthread_t thread, watcher;
    use_device(0);
    MUST(cuCtxGetCurrent(&owner));
    kernel("fill");
    pthread_create(&thread, NULL, churn, NULL);
    pthread_create(&watcher, NULL, watch, NULL);
    for (int round = 0; round < ROUNDS; round++)
        come_and_go();
    done = true;
    pthread_join(thread, NULL);
    pthread_join(watcher, NULL);
    printf("calls that failed: %u, blocks that were touched: %u\n", failed, touched);
    printf("calls in contexts whose end had begun: %llu\n", counted("trespasses"));
    return 0;
}
