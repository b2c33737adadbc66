// Many threads at once: own and shared streams, per-thread default streams, events across them,
// frees from other threads. Contents are checked, so work out of order shows. Clean under TSan.
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#include "sim/tests/check.h"

#include <cuda.h>
#include <pthread.h>
#include <string.h>

enum { THREADS = 6, ROUNDS = 40, SIZE = 20000 };

static CUcontext context;

static void check_bytes(CUdeviceptr memory, unsigned char value, CUstream stream) {
    unsigned char back[SIZE];
    DO(cuMemcpyDtoHAsync(back, memory, SIZE, stream));
    DO(cuStreamSynchronize(stream));
    for (size_t i = 0; i < SIZE; i++) {
        CHECK(back[i] == value);
    }
}

static void round_of(unsigned char value, CUstream first, CUstream second, CUevent event) {
    CUdeviceptr one = 0, two = 0;
    DO(cuMemAlloc(&one, SIZE));
    DO(cuMemAlloc(&two, SIZE));
    DO(cuMemsetD8Async(one, value, SIZE, first));
    DO(cuMemcpyDtoDAsync(two, one, SIZE, first));
    DO(cuEventRecord(event, first));
    DO(cuStreamWaitEvent(second, event, 0));
    check_bytes(two, value, second);
    DO(cuMemsetD8Async(one, (unsigned char)~value, SIZE, first));
    DO(cuMemFree(one)); // waits
    DO(cuMemFree(two));
}

static void *worker(void *argument) {
    size_t number = (size_t)argument;
    CUstream stream = NULL;
    CUevent event = NULL;
    DO(cuCtxSetCurrent(context));
    DO(cuStreamCreate(&stream, number % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
    DO(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < ROUNDS; i++) {
        unsigned char value = (unsigned char)(number * ROUNDS + (size_t)i);
        round_of(value, i % 3 ? NULL : stream, i % 3 ? stream : NULL, event);
        if (i % 8 == 0) {
            DO(cuCtxRecordEvent(context, event));
            DO(cuCtxWaitEvent(context, event));
        }
    }
    DO(cuEventDestroy(event));
    DO(cuStreamDestroy(stream));
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    DO(cuInit(0));
    DO(cuDevicePrimaryCtxRetain(&context, 0));
    DO(cuCtxSetCurrent(context));
    size_t before = 0, after = 0, total = 0;
    DO(cuMemGetInfo(&before, &total));
    for (size_t i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, worker, (void *)i) == 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    DO(cuMemGetInfo(&after, &total));
    CHECK(before == after);
    DO(cuDevicePrimaryCtxRelease(0));
    return 0;
}
