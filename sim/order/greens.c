// The order of work in green contexts: their streams, records and waits. Guarded by the lock.
#include "sim/order/greens.h"

#include "sim/base/handle.h"
#include "sim/device/thread.h"
#include "sim/order/capture.h"
#include "sim/order/event.h"
#include "sim/order/events.h"
#include "sim/order/green.h"
#include "sim/order/mark.h"
#include "sim/order/queue.h"

#include <stddef.h>

static struct CUgreenCtx_st *green_of_view(struct CUctx_st *view) {
    return (struct CUgreenCtx_st *)(void *)((char *)view - offsetof(struct CUgreenCtx_st, view));
}

struct CUgreenCtx_st *sim_green_current(void) {
    const struct sim_thread *self = sim_self();
    struct CUctx_st *handle = self->depth == 0 ? NULL : self->stack[self->depth - 1];
    return handle != NULL && handle->parent != NULL ? green_of_view(handle) : NULL;
}

void sim_green_marks(const struct CUgreenCtx_st *green, struct sim_marks *marks) {
    for (struct CUstream_st *s = green->view.parent->streams; s != NULL; s = s->next) {
        if (s->green == green) {
            sim_marks_add(marks, s, s->submitted);
        }
    }
}

static CUresult check(CUgreenCtx green, CUevent event) {
    if (!sim_handle_is(green, SIM_GREEN)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (sim_event_of(event) == NULL || event->context != green->view.parent) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    for (struct CUstream_st *s = green->view.parent->streams; s != NULL; s = s->next) {
        if (s->green == green && sim_capturing(s)) {
            return sim_capture_refuses_stream(s);
        }
    }
    return CUDA_SUCCESS;
}

CUresult sim_green_record(struct CUctx_st *view, CUevent event) {
    struct CUgreenCtx_st *green = green_of_view(view);
    CUresult result = check(green, event);
    if (result == CUDA_SUCCESS && event->shared != NULL) {
        return CUDA_ERROR_NOT_SUPPORTED; // not modelled, as for whole contexts
    }
    if (result == CUDA_SUCCESS) {
        sim_event_forget(event);
        event->recorded = true;
        sim_green_marks(green, &event->marks);
    }
    return result;
}

CUresult sim_green_wait(struct CUctx_st *view, CUevent event) {
    struct CUgreenCtx_st *green = green_of_view(view);
    CUresult result = check(green, event);
    if (result == CUDA_SUCCESS && event->captured_in != 0) {
        result = sim_capture_refuses_event(event);
    }
    if (result == CUDA_SUCCESS) {
        sim_marks_join(&green->barrier, &event->marks);
    }
    return result;
}
