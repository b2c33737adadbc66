/*
 * Releases of a primary context that are not the last end nothing, and so wait for nobody: neither
 * for a kernel, nor for another thread's free that waits for that kernel.
 */
#include <stdatomic.h>

#include "tests/conformance/gpu.h"

enum { RELEASES = 20, SPIN_MS = 900 };

static CUcontext context;
static void *block;
static atomic_bool begun;

static void *free_behind_kernel(void *unused) {
    MUST(cuCtxSetCurrent(context));
    begun = true;
    MUST(release(block));
    return unused;
}

static void capture_once(CUstream stream) {
    CUgraph graph;
    MUST(begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(end_capture(stream, &graph));
    MUST(cuGraphDestroy(graph));
}

int main(void) {
    pthread_t thread;
    CUcontext same;
    use_device(0);
    MUST(cuCtxGetCurrent(&context));
    CUstream stream = new_stream();
    block = new_block(1 * MIB);
    capture_once(stream);
    spin(stream, SPIN_MS);
    pthread_create(&thread, NULL, free_behind_kernel, NULL);
    while (!begun)
        usleep(100);
    usleep(10000);
    for (int i = 0; i < RELEASES; i++) {
        MUST(cuDevicePrimaryCtxRetain(&same, 0));
        MUST(cuDevicePrimaryCtxRelease(0));
    }
    tell("the kernel still runs", cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
    pthread_join(thread, NULL);
    say("waiting for the context", synchronize());
    say("the last release", (int)cuDevicePrimaryCtxRelease(0));
    return 0;
}
