/*
 * The events of fences: what is done with one, or with all of a fence's. For
 * interpose/fences/fences.c, but for its making.
 */
#ifndef BFC_INTERPOSE_FENCE_EVENT_H
#define BFC_INTERPOSE_FENCE_EVENT_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/driver/driver.h"

/* Of an event: as its context. Once that has ended the event is complete, and its handle void;
 * while it is about to end, nothing is known of it, and no call is made with it. */
enum fate { LIVE, ENDING, DEAD };

struct event {
    CUevent handle;
    CUcontext context;
    unsigned users;      /* atomic: host waits for it under way */
    unsigned char fate;  /* atomic, changed under the lock: an enum fate */
    unsigned char state; /* atomic, in a fence's first event: the fence's, an enum state */
    struct event *next;  /* in its fence, or in the store */
};

static inline enum fate bfc_fence_event_fate(const struct event *event) {
    return (enum fate)bfc_load_seq_cst(&event->fate);
}

/* Of all events of a list that are of the context, and not dead: a new context may have the handle
 * of one that has ended. */
void bfc_fence_events_set_fate(struct event *event, CUcontext context, enum fate fate);

/* An event of the context, without a time. */
CUresult bfc_fence_event_make_handle(const struct bfc_driver *driver, CUcontext context,
                                     CUevent *handle);

/* Makes one, first in the list `made`. */
CUresult bfc_fence_events_make(const struct bfc_driver *driver, CUcontext context,
                               struct event **made);
void bfc_fence_events_free(struct event *event);

static inline CUresult bfc_fence_events_record(const struct bfc_driver *driver,
                                               const struct event *event) {
    CUresult result = CUDA_SUCCESS;
    for (; event && result == CUDA_SUCCESS; event = event->next)
        result = driver->cuCtxRecordEvent(event->context, event->handle);
    return result;
}

/*
 * CUDA_SUCCESS when all are complete, CUDA_ERROR_NOT_READY, or an error. One of a context that is
 * about to end is not ready: soon it is dead, or live again. Only the host wait counts as a use.
 */
static inline CUresult bfc_fence_events_query(const struct bfc_driver *driver,
                                              const struct event *event) {
    CUresult result = CUDA_SUCCESS;
    for (; event && result == CUDA_SUCCESS; event = event->next)
        if (LIKELY(bfc_fence_event_fate(event) == LIVE))
            result = driver->cuEventQuery(event->handle);
        else if (bfc_fence_event_fate(event) == ENDING)
            result = CUDA_ERROR_NOT_READY;
    return result;
}
CUresult bfc_fence_events_synchronize(const struct bfc_driver *driver, struct event *events);

/* Makes the context's later work wait for all; it does not count as a use. */
static inline CUresult bfc_fence_events_order(const struct bfc_driver *driver, CUcontext context,
                                              const struct event *event) {
    CUresult result = CUDA_SUCCESS;
    for (; event && result == CUDA_SUCCESS; event = event->next)
        if (LIKELY(bfc_fence_event_fate(event) == LIVE))
            result = driver->cuCtxWaitEvent(context, event->handle);
        else if (bfc_fence_event_fate(event) == ENDING)
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return result;
}

#endif
