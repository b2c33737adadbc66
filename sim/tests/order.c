// Streams do their work later and in order; events and contexts wait as the guide says; the legacy
// default stream waits for blocking streams and not for non-blocking ones.
#include "sim/tests/check.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static atomic_int gate;   // opens for held host functions
static atomic_int passed; // counts what ran

static void CUDA_CB hold(void *unused) {
    (void)unused;
    while (!atomic_load(&gate)) {
        usleep(200);
    }
}

static void CUDA_CB pass(void *order) {
    *(int *)order = atomic_fetch_add(&passed, 1) + 1;
}

static void CUDA_CB call_cuda(void *answer) {
    CUdeviceptr pointer = 0;
    *(int *)answer = (int)cuMemAlloc(&pointer, 512);
}

static CUstream stream_with(unsigned flags) {
    CUstream stream = NULL;
    DO(cuStreamCreate(&stream, flags));
    return stream;
}

static void close_gate(CUstream stream) {
    atomic_store(&gate, 0);
    DO(cuLaunchHostFunc(stream, hold, NULL));
}

static void work_is_later_and_in_order(void) {
    int order[3] = {0};
    CUstream stream = stream_with(CU_STREAM_NON_BLOCKING);
    close_gate(stream);
    for (int i = 0; i < 3; i++) {
        DO(cuLaunchHostFunc(stream, pass, &order[i]));
    }
    ANSWERS(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    CHECK(atomic_load(&passed) == 0);
    atomic_store(&gate, 1);
    DO(cuStreamSynchronize(stream));
    CHECK(order[0] == 1 && order[1] == 2 && order[2] == 3);
    DO(cuStreamQuery(stream));
    DO(cuStreamDestroy(stream));
}

static void legacy_waits_for_blocking_only(void) {
    CUstream blocking = stream_with(0), free_running = stream_with(CU_STREAM_NON_BLOCKING);
    CUdeviceptr memory = 0;
    char byte = 0;
    DO(cuMemAlloc(&memory, 512));
    close_gate(free_running);
    DO(cuMemsetD8(memory, 1, 512)); // goes on beside the held stream
    DO(cuMemcpyDtoH(&byte, memory, 1));
    CHECK(byte == 1);
    ANSWERS(CUDA_ERROR_NOT_READY, cuStreamQuery(free_running));
    atomic_store(&gate, 1);
    DO(cuStreamSynchronize(free_running));

    close_gate(blocking);
    DO(cuMemsetD8(memory, 2, 512)); // a set does not wait, the stream does
    ANSWERS(CUDA_ERROR_NOT_READY, cuStreamQuery(CU_STREAM_LEGACY));
    CUstream other = stream_with(0);
    int order = 0;
    atomic_store(&passed, 0);
    DO(cuLaunchHostFunc(other, pass, &order)); // behind the legacy stream, so behind the gate
    usleep(20000);
    CHECK(atomic_load(&passed) == 0);
    atomic_store(&gate, 1);
    DO(cuStreamSynchronize(other));
    CHECK(order == 1);
    DO(cuMemFree(memory));
    DO(cuStreamDestroy(blocking));
    DO(cuStreamDestroy(other));
    DO(cuStreamDestroy(free_running));
}

static void events_wait_for_what_was_before(void) {
    CUstream first = stream_with(CU_STREAM_NON_BLOCKING);
    CUstream second = stream_with(CU_STREAM_NON_BLOCKING);
    CUevent event = NULL;
    int order = 0;
    atomic_store(&passed, 0);
    DO(cuEventCreate(&event, 0));
    DO(cuEventQuery(event)); // never recorded: complete
    close_gate(first);
    DO(cuEventRecord(event, first));
    ANSWERS(CUDA_ERROR_NOT_READY, cuEventQuery(event));
    DO(cuStreamWaitEvent(second, event, 0));
    DO(cuLaunchHostFunc(second, pass, &order));
    usleep(20000);
    CHECK(atomic_load(&passed) == 0);
    atomic_store(&gate, 1);
    DO(cuEventSynchronize(event));
    DO(cuStreamSynchronize(second));
    CHECK(order == 1);
    float ms = -1;
    CUevent later = NULL;
    DO(cuEventCreate(&later, 0));
    DO(cuEventRecord(later, second));
    DO(cuEventSynchronize(later));
    DO(cuEventElapsedTime(&ms, event, later));
    CHECK(ms >= 0);
    DO(cuEventDestroy(event));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(event));
    DO(cuStreamDestroy(first));
    DO(cuStreamDestroy(second));
    unsigned long long (*count)(const char *);
    *(void **)&count = dlsym(RTLD_DEFAULT, "sim_call_count");
    CHECK(count("stale") == 0);
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(later, second));
    CHECK(count("stale") == 1);
    DO(cuEventDestroy(later));
}

static void context_events(CUcontext context) {
    CUstream held = stream_with(CU_STREAM_NON_BLOCKING);
    CUevent event = NULL;
    int order = 0;
    atomic_store(&passed, 0);
    DO(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    close_gate(held);
    DO(cuStreamDestroy(held)); // still busy, still covered
    DO(cuCtxRecordEvent(context, event));
    ANSWERS(CUDA_ERROR_NOT_READY, cuEventQuery(event));
    DO(cuCtxWaitEvent(context, event));
    CUstream fresh = stream_with(CU_STREAM_NON_BLOCKING);
    DO(cuStreamQuery(fresh));
    DO(cuLaunchHostFunc(fresh, pass, &order));
    usleep(20000);
    CHECK(atomic_load(&passed) == 0);
    atomic_store(&gate, 1);
    DO(cuCtxSynchronize());
    CHECK(order == 1);
    DO(cuEventQuery(event));
    DO(cuEventDestroy(event));
    DO(cuStreamDestroy(fresh));
}

static void free_waits(void) {
    CUstream stream = stream_with(CU_STREAM_NON_BLOCKING);
    CUdeviceptr memory = 0;
    int order = 0;
    atomic_store(&passed, 0);
    DO(cuMemAlloc(&memory, 4 << 20));
    for (int i = 0; i < 20; i++) {
        DO(cuMemsetD8Async(memory, (unsigned char)i, 4 << 20, stream));
    }
    DO(cuLaunchHostFunc(stream, pass, &order));
    DO(cuMemFree(memory));
    CHECK(order == 1);
    DO(cuStreamDestroy(stream));
}

static void callbacks_may_not_call(void) {
    int answer = 0;
    DO(cuLaunchHostFunc(NULL, call_cuda, &answer));
    DO(cuStreamSynchronize(NULL));
    CHECK(answer == CUDA_ERROR_NOT_PERMITTED);
}

static CUresult prefetch(CUdeviceptr memory, CUstream stream) {
#if CUDA_VERSION < 13000
    return cuMemPrefetchAsync(memory, 4096, 0, stream);
#else
    CUmemLocation there = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    return cuMemPrefetchAsync(memory, 4096, there, 0, stream);
#endif
}

static void prefetches_are_work(void) {
    CUstream stream = stream_with(CU_STREAM_NON_BLOCKING);
    CUdeviceptr memory = 0;
    DO(cuMemAllocManaged(&memory, 4096, CU_MEM_ATTACH_GLOBAL));
    DO(cuStreamQuery(stream));
    close_gate(stream);
    DO(prefetch(memory, stream));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, prefetch(4096, stream));
    ANSWERS(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    atomic_store(&gate, 1);
    DO(cuStreamSynchronize(stream));
    DO(cuMemFree(memory));
}

static void batches_write_and_wait(void) {
    CUstream writer = stream_with(CU_STREAM_NON_BLOCKING),
             waiter = stream_with(CU_STREAM_NON_BLOCKING);
    unsigned *words = NULL;
    DO(cuMemHostAlloc((void **)&words, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    memset(words, 0, 4096);
    CUdeviceptr at = (uintptr_t)words;
    CUstreamBatchMemOpParams waits[] = {
        {.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32, .address = at, .value = 3}},
        {.writeValue = {
             .operation = CU_STREAM_MEM_OP_WRITE_VALUE_64, .address = at + 8, .value64 = 7}}};
    CUstreamBatchMemOpParams write = {
        .writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = at, .value = 3}};
    DO(cuStreamBatchMemOp_v2(waiter, 2, waits, 0));
    ANSWERS(CUDA_ERROR_NOT_READY, cuStreamQuery(waiter));
    CHECK(words[2] == 0);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp_v2(writer, 1, NULL, 0));
    DO(cuStreamBatchMemOp_v2(writer, 1, &write, 0));
    DO(cuStreamSynchronize(waiter));
    CHECK(words[0] == 3 && words[2] == 7);
    DO(cuMemFreeHost(words));
}

int main(void) {
    CUcontext context = NULL;
    DO(cuInit(0));
    DO(cuDevicePrimaryCtxRetain(&context, 0));
    DO(cuCtxSetCurrent(context));
    work_is_later_and_in_order();
    legacy_waits_for_blocking_only();
    events_wait_for_what_was_before();
    context_events(context);
    free_waits();
    callbacks_may_not_call();
    prefetches_are_work();
    batches_write_and_wait();
    return 0;
}
