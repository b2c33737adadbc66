// A stream's first piece of work, done. Guarded by the lock, except while the piece runs.
#include "sim/order/run.h"

#include "sim/base/lock.h"
#include "sim/device/contexts.h"
#include "sim/device/thread.h"
#include "sim/kernel.h"
#include "sim/memory/flight.h"
#include "sim/order/mark.h"
#include "sim/order/queue.h"

bool sim_stream_work(struct CUstream_st *stream) {
    struct sim_work *work = stream->head;
    sim_self()->running = work->context;
    sim_lock_give();
    CUresult result = work->type->run(work);
    sim_lock_take();
    if (sim_flight_end()) {
        result = CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    sim_self()->running = NULL;
    if (result == (CUresult)SIM_AGAIN) {
        return false;
    }
    stream->head = work->next;
    if (stream->head == NULL) {
        stream->tail = &stream->head;
    }
    stream->done = work->number;
    if (result != CUDA_SUCCESS) {
        sim_context_fail(work->context, result);
    }
    sim_marks_drop(&work->waits);
    work->type->drop(work);
    sim_progress_broadcast();
    return true;
}
