/* Ends contexts in every way, with blocks live in them, and goes on in new ones. */
#include <pthread.h>

#include "tests/integration/interpose/program.h"

static CUdeviceptr allocate(size_t bytes) {
    CUdeviceptr pointer;
    CHECK(cuMemAlloc(&pointer, bytes));
    CHECK(cuMemsetD8(pointer, 7, bytes));
    return pointer;
}

static void own_context(void) {
    CUcontext context, popped;
    CHECK(cuCtxCreate(&context, NULL, 0, 0));
    CUdeviceptr kept = allocate(1 << 20), freed = allocate(4096);
    CHECK(cuMemFree(freed));
    CHECK(cuCtxPopCurrent(&popped));
    printf("free with another context %d\n", cuMemFree(kept));
    CHECK(cuCtxPushCurrent(context));
    kept = allocate(100);
    CHECK(cuCtxDestroy(context));
    printf("free after destruction %d\n", cuMemFree(kept));
}

/* A stream that was created says where a free in its order belongs. */
static void without_current(void) {
    CUcontext context, none = NULL;
    CUstream stream;
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUdeviceptr small = allocate(1000), large = allocate(5 << 20), told = 0;
    CHECK(cuCtxSynchronize()); /* the stream does not wait for what filled them */
    CHECK(cuCtxGetCurrent(&context));
    CHECK(cuCtxSetCurrent(NULL));
    printf("free in a stream without a context %d\n", cuMemFreeAsync(small, stream));
    printf("free in the null stream without one %d\n", cuMemFreeAsync(large, NULL));
    printf("asked without one %d",
           cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, large));
    CHECK(cuCtxGetCurrent(&none));
    printf(", the same %d, none %d\n", told == large, none == NULL);
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuStreamSynchronize(stream));
    printf("freed already %d\n", cuMemFree(small));
    CHECK(cuMemFree(large));
    CHECK(cuStreamDestroy(stream));
}

static void reset_primary(void) {
    CUcontext context;
    CUdeviceptr before = allocate(1 << 20);
    CHECK(cuDevicePrimaryCtxReset(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    printf("free after reset %d\n", cuMemFree(before));
    CHECK(cuMemFree(allocate(1 << 20)));
}

static void release_primary(void) {
    CUdeviceptr before = allocate(1 << 20);
    int active = 1;
    unsigned flags;
    while (active) {
        CHECK(cuDevicePrimaryCtxRelease(0));
        CHECK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    }
    CUcontext context;
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    printf("free after release %d\n", cuMemFree(before));
    CHECK(cuMemFree(allocate(1 << 20)));
}

static void *free_without_context(void *argument) {
    CUcontext context;
    CHECK(cuCtxGetCurrent(&context));
    printf("context in a new thread %s\n", context ? "yes" : "no");
    printf("free without a context %d\n", cuMemFree(*(CUdeviceptr *)argument));
    return NULL;
}

int main(void) {
    pthread_t thread;
    use_primary(0);
    for (int i = 0; i < 40; i++) /* more than the segment has sections */
        own_context();
    without_current();
    reset_primary();
    release_primary();
    CUdeviceptr pointer = allocate(12345);
    pthread_create(&thread, NULL, free_without_context, &pointer);
    pthread_join(thread, NULL);
    return 0;
}
