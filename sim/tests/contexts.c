// Contexts: primary ones through their lives, own ones, what is current, what dies with them.
#include "sim/tests/check.h"

#include <cuda.h>
#include <pthread.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" // programs still use cuCtxDetach

static unsigned long long id_of(CUcontext context) {
    unsigned long long id = 0;
    DO(cuCtxGetId(context, &id));
    return id;
}

static int active(CUdevice device) {
    unsigned flags = 0;
    int state = 0;
    DO(cuDevicePrimaryCtxGetState(device, &flags, &state));
    return state;
}

static void primary_lives(void) {
    CUcontext first = NULL, second = NULL;
    CUdeviceptr memory = 0;
    CHECK(!active(0));
    DO(cuDevicePrimaryCtxRetain(&first, 0));
    DO(cuDevicePrimaryCtxRetain(&second, 0));
    CHECK(first == second && active(0));
    unsigned long long id = id_of(first);
    DO(cuCtxSetCurrent(first));
    DO(cuMemAlloc(&memory, 100));
    DO(cuDevicePrimaryCtxRelease(0));
    CHECK(active(0));
    DO(cuDevicePrimaryCtxRelease(0));
    CHECK(!active(0));
    ANSWERS(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(0));
    ANSWERS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFree(memory));
    DO(cuDevicePrimaryCtxRetain(&second, 0));
    CHECK(first == second && id_of(first) != id);
    id = id_of(first);
    DO(cuDevicePrimaryCtxReset(0)); // does not release
    CHECK(!active(0));
    DO(cuDevicePrimaryCtxRetain(&second, 0));
    CHECK(id_of(second) != id);
    DO(cuDevicePrimaryCtxRelease(0));
    DO(cuDevicePrimaryCtxRelease(0));
    CHECK(!active(0));
    DO(cuCtxSetCurrent(NULL));
}

static void own_contexts(void) {
    CUcontext one = NULL, two = NULL, now = NULL;
    CUdevice device = -1;
    CUstream stream = NULL;
    CUevent event = NULL;
    CUdeviceptr memory = 0;
    ANSWERS(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&memory, 1));
    DO(cuCtxCreate(&one, NULL, 0, 0));
    DO(cuCtxCreate(&two, NULL, CU_CTX_SCHED_YIELD, 1));
    CHECK(one != two && id_of(one) != id_of(two));
    DO(cuCtxGetDevice(&device));
    CHECK(device == 1);
    DO(cuMemAlloc(&memory, 1));
    DO(cuStreamCreate(&stream, 0));
    DO(cuEventCreate(&event, 0));
    DO(cuCtxPopCurrent(&now));
    CHECK(now == two);
    DO(cuCtxGetCurrent(&now));
    CHECK(now == one);
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuCtxRecordEvent(one, event));
    DO(cuCtxRecordEvent(two, event));
    DO(cuCtxDestroy(two)); // with its memory, stream and event
    ANSWERS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxDestroy(two));
    ANSWERS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxPushCurrent(two));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFree(memory));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy(stream));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuEventDestroy(event));
    DO(cuCtxDestroy(one));
    ANSWERS(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent(&now));
}

// With a seed, what was the old one's is not the new one's.
static void used_handles(void) {
    CUcontext context = NULL, before = NULL;
    CUdeviceptr memory = 0;
    CUevent event = NULL;
    int again = 0;
    for (int i = 0; i < 20; i++) {
        DO(cuCtxCreate(&context, NULL, 0, 0));
        unsigned long long id = id_of(context);
        if (context == before) {
            again++;
            ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFree(memory));
            ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuEventDestroy(event));
        }
        DO(cuMemAlloc(&memory, 1));
        DO(cuEventCreate(&event, 0));
        DO(cuCtxAttach(&before, 0));
        DO(cuCtxDetach(context));
        CHECK(before == context && id_of(context) == id);
        DO(cuCtxDetach(context));
    }
    CHECK(again > 0 && again < 20);
}

static void *context_of(void *stream) {
    CUcontext context = NULL;
    DO(cuStreamGetCtx(*(CUstream *)stream, &context));
    ANSWERS(CUDA_ERROR_INVALID_CONTEXT, cuStreamGetCtx(NULL, &context));
    return NULL;
}

static void streams_name_their_context(void) {
    CUcontext context = NULL;
    CUstream stream = NULL;
    pthread_t thread;
    DO(cuCtxCreate(&context, NULL, 0, 0));
    DO(cuStreamCreate(&stream, 0));
    CHECK(pthread_create(&thread, NULL, context_of, &stream) == 0);
    pthread_join(thread, NULL);
    DO(cuCtxDestroy(context));
}

static void *free_without_context(void *memory) {
    CUcontext current = NULL;
    DO(cuCtxGetCurrent(&current));
    CHECK(current == NULL);
    DO(cuMemFree(*(CUdeviceptr *)memory));
    return NULL;
}

static void frees_go_by_pointer(void) {
    CUcontext context = NULL;
    CUdeviceptr memory = 0;
    pthread_t thread;
    DO(cuCtxCreate(&context, NULL, 0, 0));
    DO(cuMemAlloc(&memory, 1 << 22));
    CHECK(pthread_create(&thread, NULL, free_without_context, &memory) == 0);
    pthread_join(thread, NULL);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFree(memory));
    DO(cuCtxDestroy(context));
}

int main(void) {
    int count = 0;
    CUcontext context = NULL;
    ANSWERS(CUDA_ERROR_NOT_INITIALIZED, cuCtxGetCurrent(&context));
    DO(cuInit(0));
    DO(cuDeviceGetCount(&count));
    CHECK(count == 2);
    ANSWERS(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRetain(&context, 2));
    primary_lives();
    own_contexts();
    used_handles();
    streams_name_their_context();
    frees_go_by_pointer();
    return 0;
}
