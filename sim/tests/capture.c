// Stream capture: what becomes of work, what is barred for whom, how captures spread, end and
// break.
#include "sim/tests/check.h"

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

static CUcontext context;

static CUstream stream_with(unsigned flags) {
    CUstream stream = NULL;
    DO(cuStreamCreate(&stream, flags));
    return stream;
}

static CUstreamCaptureStatus status_of(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    DO(cuStreamIsCapturing(stream, &status));
    return status;
}

static CUresult end(CUstream stream) {
    CUgraph graph = NULL;
    CUresult result = cuStreamEndCapture(stream, &graph);
    CHECK((graph != NULL) == (result == CUDA_SUCCESS));
    if (graph != NULL) {
        DO(cuGraphDestroy(graph));
    }
    return result;
}

// Begins a capture, makes one call that breaks it, and ends it.
#define BREAKS(stream, code, call)                                                                 \
    do {                                                                                           \
        DO(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));                           \
        ANSWERS(code, call);                                                                       \
        CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);                          \
        ANSWERS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end(stream));                               \
        CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_NONE);                                 \
    } while (0)

static void work_waits_for_the_launch(void) {
    CUstream stream = stream_with(CU_STREAM_NON_BLOCKING);
    CUdeviceptr memory = 0;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    size_t nodes = 0;
    char byte = 0;
    DO(cuMemAlloc(&memory, 100));
    DO(cuMemsetD8(memory, 1, 100));
    DO(cuCtxSynchronize());
    DO(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    DO(cuMemsetD8Async(memory, 2, 100, stream));
    DO(cuMemcpyDtoDAsync(memory + 50, memory, 50, stream));
    DO(cuStreamEndCapture(stream, &graph));
    DO(cuGraphGetNodes(graph, NULL, &nodes));
    CHECK(nodes == 2);
    DO(cuMemcpyDtoH(&byte, memory, 1));
    CHECK(byte == 1);
    DO(cuGraphInstantiate(&exec, graph, 0));
    DO(cuGraphDestroy(graph));
    DO(cuGraphLaunch(exec, stream));
    DO(cuStreamSynchronize(stream));
    DO(cuMemcpyDtoH(&byte, memory + 99, 1));
    CHECK(byte == 2);
    DO(cuGraphExecDestroy(exec));
    DO(cuMemFree(memory));
    DO(cuStreamDestroy(stream));
}

static void what_breaks_a_capture(void) {
    CUstream stream = stream_with(CU_STREAM_NON_BLOCKING), blocking = stream_with(0);
    CUevent event = NULL, before = NULL;
    CUdeviceptr memory = 0, kept = 0;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    DO(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    DO(cuEventCreate(&before, CU_EVENT_DISABLE_TIMING));
    DO(cuMemAlloc(&kept, 10));
    DO(cuEventRecord(before, stream));
    DO(cuCtxSynchronize());
    BREAKS(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc(&memory, 1));
    BREAKS(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemFree(kept));
    BREAKS(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(stream));
    BREAKS(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamQuery(stream));
    BREAKS(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxSynchronize());
    BREAKS(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxRecordEvent(context, event));
    BREAKS(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxWaitEvent(context, event));
    BREAKS(stream, CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(stream, before, 0));
    BREAKS(blocking, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuMemsetD8(kept, 0, 10));

    DO(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ANSWERS(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamIsCapturing(CU_STREAM_LEGACY, &status));
    DO(end(blocking)); // asking broke nothing
    DO(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    DO(cuMemsetD8(kept, 0, 10)); // the legacy stream knows nothing of a non-blocking one
    DO(end(stream));
    ANSWERS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
            cuStreamBeginCapture(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_RELAXED));
    ANSWERS(CUDA_ERROR_ILLEGAL_STATE, end(stream));
    DO(cuEventDestroy(event));
    DO(cuEventDestroy(before));
    DO(cuMemFree(kept));
    DO(cuStreamDestroy(stream));
    DO(cuStreamDestroy(blocking));
}

static void captures_spread_and_must_join(void) {
    CUstream first = stream_with(CU_STREAM_NON_BLOCKING), second = stream_with(0);
    CUevent fork = NULL, join = NULL;
    CUdeviceptr memory = 0;
    DO(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    DO(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    DO(cuMemAlloc(&memory, 8));
    for (int joined = 0; joined < 2; joined++) {
        DO(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        DO(cuEventRecord(fork, first));
        ANSWERS(CUDA_ERROR_CAPTURED_EVENT,
                (int)(cuThreadExchangeStreamCaptureMode(
                          &(CUstreamCaptureMode){CU_STREAM_CAPTURE_MODE_RELAXED}) == CUDA_SUCCESS
                          ? cuEventQuery(fork)
                          : CUDA_SUCCESS));
        DO(cuThreadExchangeStreamCaptureMode(
            &(CUstreamCaptureMode){CU_STREAM_CAPTURE_MODE_GLOBAL}));
        DO(cuStreamWaitEvent(second, fork, 0));
        CHECK(status_of(second) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
        DO(cuMemsetD8Async(memory, 3, 8, second));
        DO(cuEventRecord(join, second));
        ANSWERS(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                joined ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : cuMemsetD8(memory, 0, 8));
        if (joined) {
            DO(cuStreamWaitEvent(first, join, 0));
            DO(end(first));
        } else {
            ANSWERS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end(first));
        }
        CHECK(status_of(second) == CU_STREAM_CAPTURE_STATUS_NONE);
    }
    DO(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_GLOBAL));
    DO(cuEventRecord(fork, first));
    DO(cuStreamWaitEvent(second, fork, 0));
    DO(cuMemsetD8Async(memory, 3, 8, second));
    ANSWERS(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, end(first));
    DO(cuMemFree(memory));
    DO(cuEventDestroy(fork));
    DO(cuEventDestroy(join));
    DO(cuStreamDestroy(first));
    DO(cuStreamDestroy(second));
}

static void captures_do_not_merge(void) {
    CUstream first = stream_with(CU_STREAM_NON_BLOCKING);
    CUstream second = stream_with(CU_STREAM_NON_BLOCKING);
    CUevent event = NULL;
    DO(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    DO(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_RELAXED));
    DO(cuStreamBeginCapture(second, CU_STREAM_CAPTURE_MODE_RELAXED));
    DO(cuEventRecord(event, first));
    ANSWERS(CUDA_ERROR_STREAM_CAPTURE_MERGE, cuStreamWaitEvent(second, event, 0));
    ANSWERS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end(first));
    ANSWERS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end(second));
    DO(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_RELAXED));
    DO(cuStreamDestroy(first)); // and the capture with it
    DO(cuStreamDestroy(second));
    DO(cuEventDestroy(event));
}

// ---- who is barred ----

struct other {
    CUstream stream;
    CUstreamCaptureMode mode;
    CUresult answer, ended;
};

static void *allocate_beside(void *argument) {
    struct other *other = argument;
    CUdeviceptr memory = 0;
    CUgraph graph = NULL;
    CUstreamCaptureMode mode = other->mode;
    DO(cuCtxSetCurrent(context));
    DO(cuThreadExchangeStreamCaptureMode(&mode));
    CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
    other->ended = cuStreamEndCapture(other->stream, &graph);
    other->answer = cuMemAlloc(&memory, 1);
    if (other->answer == CUDA_SUCCESS) {
        DO(cuMemFree(memory));
    }
    return NULL;
}

static void other_thread(CUstreamCaptureMode capture, CUstreamCaptureMode thread_mode,
                         bool barred) {
    struct other other = {.stream = stream_with(CU_STREAM_NON_BLOCKING), .mode = thread_mode};
    pthread_t thread;
    CUgraph graph = NULL;
    DO(cuStreamBeginCapture(other.stream, capture));
    CHECK(pthread_create(&thread, NULL, allocate_beside, &other) == 0);
    pthread_join(thread, NULL);
    ANSWERS(barred ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS, other.answer);
    if (capture == CU_STREAM_CAPTURE_MODE_RELAXED) {
        DO(other.ended);
    } else {
        ANSWERS(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, other.ended);
        ANSWERS(barred ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS,
                cuStreamEndCapture(other.stream, &graph));
    }
    DO(cuStreamDestroy(other.stream));
}

static void own_thread(CUstreamCaptureMode capture, CUstreamCaptureMode thread_mode, bool barred) {
    CUstream stream = stream_with(CU_STREAM_NON_BLOCKING);
    CUdeviceptr memory = 0;
    DO(cuStreamBeginCapture(stream, capture));
    DO(cuThreadExchangeStreamCaptureMode(&thread_mode));
    ANSWERS(barred ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS, cuMemAlloc(&memory, 1));
    DO(cuThreadExchangeStreamCaptureMode(&thread_mode));
    ANSWERS(barred ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS, end(stream));
    if (!barred) {
        DO(cuMemFree(memory));
    }
    DO(cuStreamDestroy(stream));
}

static void who_is_barred(void) {
    const CUstreamCaptureMode global = CU_STREAM_CAPTURE_MODE_GLOBAL;
    const CUstreamCaptureMode local = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    const CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    own_thread(global, global, true);
    own_thread(local, global, true);
    own_thread(relaxed, global, false);
    own_thread(global, local, true);
    own_thread(global, relaxed, false);
    other_thread(global, global, true);
    other_thread(global, local, false);
    other_thread(global, relaxed, false);
    other_thread(local, global, false);
    other_thread(relaxed, global, false);
}

int main(void) {
    DO(cuInit(0));
    DO(cuDevicePrimaryCtxRetain(&context, 0));
    DO(cuCtxSetCurrent(context));
    work_waits_for_the_launch();
    what_breaks_a_capture();
    captures_spread_and_must_join();
    captures_do_not_merge();
    who_is_barred();
    return 0;
}
