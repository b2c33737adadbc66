// Events: recording them and waiting for them.
//
// cuCtxRecordEvent submits nothing: it takes the marks of all streams of the context, those
// destroyed but still busy included.
#include "sim/order/event.h"
#include "sim/base/counts.h"
#include "sim/base/handle.h"
#include "sim/border/border.h"
#include "sim/device/context.h"
#include "sim/device/contexts.h"
#include "sim/device/thread.h"
#include "sim/order/capture.h"
#include "sim/order/events.h"
#include "sim/order/greens.h"
#include "sim/order/mark.h"
#include "sim/order/meant.h"
#include "sim/order/queue.h"
#include "sim/order/shared_event.h"
#include "sim/order/stream.h"
#include "sim/order/wait.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static CUresult make(CUevent *out, unsigned flags, struct sim_shared_event *shared) {
    struct CUevent_st *event = calloc(1, sizeof *event);
    if (event == NULL || !sim_handle_add(event, SIM_EVENT)) {
        free(event);
        sim_shared_event_release(shared);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    event->context = sim_current();
    event->flags = flags;
    event->shared = shared;
    event->next = event->context->events;
    event->context->events = event;
    *out = event;
    return CUDA_SUCCESS;
}

static CUresult create(CUevent *out, unsigned flags) {
    const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    bool timed_ipc = (flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING);
    if (out == NULL || (flags & ~known) != 0 || timed_ipc) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_shared_event *shared = NULL;
    if (flags & CU_EVENT_INTERPROCESS) {
        shared = sim_shared_event_new();
        if (shared == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    return make(out, flags, shared);
}

SIM_CALL(cuEventCreate, SIM_CURRENT, (CUevent * event, unsigned flags), create(event, flags))

static CUresult destroy(CUevent handle) {
    struct CUevent_st *event = sim_event_of(handle);
    if (event == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    struct CUevent_st **link = &event->context->events;
    while (*link != event) {
        link = &(*link)->next;
    }
    *link = event->next;
    sim_event_end(event);
    return CUDA_SUCCESS;
}

SIM_CALL(cuEventDestroy, SIM_READY, (CUevent event), destroy(event))
SIM_CALL(cuEventDestroy_v2, SIM_READY, (CUevent event), destroy(event))

static CUresult record(CUevent handle, CUstream stream_handle, unsigned flags, bool per_thread) {
    CUresult result = CUDA_SUCCESS;
    struct CUstream_st *stream = sim_stream_of(stream_handle, per_thread, &result);
    struct CUevent_st *event = sim_event_of(handle);
    sim_counts.records++;
    if (flags > CU_EVENT_RECORD_EXTERNAL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (stream == NULL || event == NULL) {
        return stream == NULL ? result : CUDA_ERROR_INVALID_HANDLE;
    }
    if (event->context->device != stream->context->device) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (sim_capturing(stream)) {
        if (flags == CU_EVENT_RECORD_EXTERNAL) {
            return sim_capture_add_event(stream, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
        }
        sim_event_forget(event);
        return sim_capture_record(event, stream);
    }
    return sim_event_record(event, stream);
}

SIM_PAIR(cuEventRecord, cuEventRecord_ptsz, SIM_CURRENT, (CUevent event, CUstream stream),
         record(event, stream, 0, per_thread))
SIM_PAIR(cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz, SIM_CURRENT,
         (CUevent event, CUstream stream, unsigned flags), record(event, stream, flags, per_thread))

// The context that a call names, NULL being the current one.
static CUresult named_context(CUcontext handle, struct CUctx_st **context) {
    *context = handle != NULL ? handle : sim_current_handle();
    if (*context == NULL || !sim_context_known(*context)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return sim_context_error(*context);
}

static CUresult record_context(CUcontext handle, CUevent event_handle) {
    struct CUctx_st *context;
    struct CUevent_st *event = sim_event_of(event_handle);
    sim_counts.records++;
    CUresult result = named_context(handle, &context);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (context->parent != NULL) {
        return sim_green_record(context, event_handle);
    }
    // "hEvent and hCtx must be from the same context."
    if (event == NULL || event->context != context) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (event->shared != NULL) {
        return CUDA_ERROR_NOT_SUPPORTED; // not modelled: nothing would complete it for the others
    }
    result = sim_capture_refuses_context(context);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    sim_event_forget(event);
    event->recorded = true;
    sim_context_marks(context, &event->marks);
    return CUDA_SUCCESS;
}

SIM_CALL(cuCtxRecordEvent, SIM_READY, (CUcontext context, CUevent event),
         record_context(context, event))

// ---- waiting ----

static CUresult run_nothing(struct sim_work *work) {
    (void)work;
    return CUDA_SUCCESS;
}

static void drop(struct sim_work *work) {
    free(work);
}

static const struct sim_work_type wait_type = {.run = run_nothing, .drop = drop};

static CUresult stream_waits(CUstream stream_handle, CUevent event_handle, unsigned flags,
                             bool per_thread) {
    CUresult result = CUDA_SUCCESS;
    struct CUstream_st *stream = sim_stream_of(stream_handle, per_thread, &result);
    struct CUevent_st *event = sim_event_of(event_handle);
    sim_counts.device_waits++;
    if (flags > CU_EVENT_WAIT_EXTERNAL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (stream == NULL || event == NULL) {
        return stream == NULL ? result : CUDA_ERROR_INVALID_HANDLE;
    }
    if (sim_capturing(stream) && flags == CU_EVENT_WAIT_EXTERNAL) {
        return sim_capture_add_event(stream, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
    }
    if (sim_capturing(stream) || event->captured_in != 0) {
        return sim_capture_wait(stream, event);
    }
    if (event->shared != NULL) {
        return sim_shared_event_await(event->shared, stream);
    }
    if (sim_marks_complete(&event->marks)) {
        return CUDA_SUCCESS;
    }
    struct sim_work *work = calloc(1, sizeof *work);
    if (work == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    work->type = &wait_type;
    sim_marks_join(&work->waits, &event->marks);
    return sim_submit(stream, work);
}

SIM_PAIR(cuStreamWaitEvent, cuStreamWaitEvent_ptsz, SIM_CURRENT,
         (CUstream stream, CUevent event, unsigned flags),
         stream_waits(stream, event, flags, per_thread))

static CUresult context_waits(CUcontext handle, CUevent event_handle) {
    struct CUctx_st *context;
    struct CUevent_st *event = sim_event_of(event_handle);
    sim_counts.device_waits++;
    CUresult result = named_context(handle, &context);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (context->parent != NULL) {
        return sim_green_wait(context, event_handle);
    }
    if (event == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    result = sim_capture_refuses_context(context);
    if (result == CUDA_SUCCESS && event->captured_in != 0) {
        result = sim_capture_refuses_event(event);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    sim_marks_join(&context->barrier, &event->marks);
    if (event->shared != NULL) {
        sim_shared_event_finish(event->shared);
    }
    return CUDA_SUCCESS;
}

SIM_CALL(cuCtxWaitEvent, SIM_READY, (CUcontext context, CUevent event),
         context_waits(context, event))

static CUresult query(CUevent handle) {
    struct CUevent_st *event = sim_event_of(handle);
    if (event == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    CUresult result = sim_context_error(event->context);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (event->captured_in != 0) {
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    bool ready = event->shared != NULL ? sim_shared_event_ready(event->shared)
                                       : sim_marks_complete(&event->marks);
    return ready ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

SIM_CALL(cuEventQuery, SIM_READY | SIM_UNSAFE, (CUevent event), query(event))

static CUresult synchronize(CUevent handle) {
    struct CUevent_st *event = sim_event_of(handle);
    if (event == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (event->captured_in != 0) {
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    struct CUctx_st *context = event->context;
    struct sim_shared_event *shared = event->shared;
    struct sim_marks marks = {0};
    sim_marks_join(&marks, &event->marks);
    if (shared != NULL) {
        sim_shared_event_hold(shared);
    }
    sim_counts.spinning_waits += !(event->flags & CU_EVENT_BLOCKING_SYNC) &&
                                 (context->flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_BLOCKING_SYNC;
    sim_wait(&marks);
    if (shared != NULL) {
        sim_shared_event_finish(shared);
        sim_shared_event_release(shared);
    }
    return sim_context_error(context);
}

SIM_CALL(cuEventSynchronize, SIM_READY | SIM_UNSAFE, (CUevent event), synchronize(event))

// ---- other processes ----

struct token {
    char magic[8];
    int32_t pid, file;
};
_Static_assert(sizeof(struct token) <= CU_IPC_HANDLE_SIZE, "a token fits a handle");

static const char magic[8] = "simipce";

static CUresult export(CUipcEventHandle *out, CUevent handle) {
    struct CUevent_st *event = sim_event_of(handle);
    if (out == NULL || event == NULL) {
        return out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    }
    if (event->shared == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct token token = {.pid = (int32_t)getpid(), .file = sim_shared_event_file(event->shared)};
    memcpy(token.magic, magic, sizeof magic);
    memset(out, 0, sizeof *out);
    memcpy(out->reserved, &token, sizeof token);
    return CUDA_SUCCESS;
}

static CUresult import(CUevent *out, const CUipcEventHandle *handle) {
    struct token token;
    memcpy(&token, handle->reserved, sizeof token);
    if (out == NULL || memcmp(token.magic, magic, sizeof magic) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (token.pid == (int32_t)getpid()) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    struct sim_shared_event *shared = sim_shared_event_open(token.pid, token.file);
    return shared == NULL ? CUDA_ERROR_INVALID_HANDLE
                          : make(out, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING, shared);
}

SIM_CALL(cuIpcGetEventHandle, SIM_CURRENT, (CUipcEventHandle * handle, CUevent event),
         export(handle, event))
SIM_CALL(cuIpcOpenEventHandle, SIM_CURRENT, (CUevent * event, CUipcEventHandle handle),
         import(event, &handle))

// ---- time ----

static CUresult time_between(float *ms, CUevent from_handle, CUevent to_handle) {
    struct CUevent_st *from = sim_event_of(from_handle), *to = sim_event_of(to_handle);
    if (ms == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (from == NULL || to == NULL || !from->recorded || !to->recorded || from->time == NULL ||
        to->time == NULL || ((from->flags | to->flags) & CU_EVENT_DISABLE_TIMING)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!from->time->known || !to->time->known) {
        return CUDA_ERROR_NOT_READY;
    }
    *ms = (float)(to->time->ms - from->time->ms);
    return CUDA_SUCCESS;
}

SIM_CALL(cuEventElapsedTime, SIM_READY, (float *ms, CUevent from, CUevent to),
         time_between(ms, from, to))
SIM_CALL(cuEventElapsedTime_v2, SIM_READY, (float *ms, CUevent from, CUevent to),
         time_between(ms, from, to))
