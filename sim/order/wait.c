// The host waits for streams. Guarded by the lock, which is given back meanwhile.
#include "sim/order/wait.h"

#include "sim/base/counts.h"
#include "sim/base/lock.h"
#include "sim/device/contexts.h"
#include "sim/order/mark.h"
#include "sim/order/queue.h"
#include "sim/order/step.h"

CUresult sim_wait(struct sim_marks *marks) {
    bool blocked = !sim_marks_complete(marks);
    sim_count_wait(blocked);
    while (!sim_marks_complete(marks)) {
        if (!sim_step_ahead()) {
            sim_progress_wait();
        }
    }
    sim_marks_drop(marks);
    return CUDA_SUCCESS;
}

CUresult sim_stream_finish(struct CUstream_st *stream) {
    struct CUctx_st *context = stream->context;
    struct sim_marks marks = {0};
    sim_marks_add(&marks, stream, stream->submitted);
    sim_wait(&marks);
    return sim_context_error(context);
}

CUresult sim_context_finish(struct CUctx_st *context) {
    struct sim_marks marks = {0};
    sim_context_marks(context, &marks);
    sim_wait(&marks);
    return sim_context_error(context);
}

void sim_devices_finish(void) {
    struct sim_marks marks = {0};
    for (struct CUctx_st *context = sim_context_next(NULL); context != NULL;
         context = sim_context_next(context)) {
        sim_context_marks(context, &marks);
    }
    sim_wait(&marks);
}
