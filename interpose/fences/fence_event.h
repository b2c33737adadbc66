/*
 * CUDA events that show when a freed block may be handed out again. A fence has a list of them, one
 * for each context that it covers; a free in the order of a stream has one.
 *
 * An event of a fence is not reused while the fence is pinned or being recorded. The event of a
 * free in the order of a stream may be reused even while a thread queries it (stream_frees.c). No
 * function here takes a lock. Errors are the driver's.
 */
#ifndef BFC_INTERPOSE_FENCE_EVENT_H
#define BFC_INTERPOSE_FENCE_EVENT_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/driver/driver.h"

/* The state of an event's context. LIVE: the context is in use. ENDING: the context is about to
 * end; no call uses the event, so its state is unknown. DEAD: the context has ended; the event
 * counts as complete, and its handle is invalid. */
enum liveness { LIVE, ENDING, DEAD };

struct event {
    CUevent handle;
    CUcontext context;
    unsigned users; /* atomic: how many host waits for this event are under way */
    /* enum liveness; atomic; written under the lock of the struct that holds the event */
    unsigned char liveness;
    /* only in the first event of a fence: the fence's state (enum state); atomic */
    unsigned char state;
    struct event *next; /* the next event of the same fence, or of the list of unused events */
};

static inline enum liveness bfc_fence_event_liveness(const struct event *event) {
    return (enum liveness)bfc_load_seq_cst(&event->liveness);
}

/* Sets the liveness of those events in the list that belong to `context`. Dead events stay dead,
 * because a new context may have the same handle as one that has ended. */
void bfc_fence_events_set_liveness(struct event *event, CUcontext context, enum liveness liveness);

/* Creates an event without timing in `context`, and adds it to the front of the list `made`. */
CUresult bfc_fence_events_make(const struct bfc_driver *driver, CUcontext context,
                               struct event **made);
void bfc_fence_events_free(struct event *event);

/* A store is a list of unused events, guarded by a lock of the caller's. bfc_fence_events_take
 * moves a live event of the context from the store to the front of the list `taken`; false: there
 * is none. bfc_fence_events_store adds a list of events to the store, and frees those that are
 * dead. bfc_fence_events_purge frees the store's dead events. */
bool bfc_fence_events_take(struct event **store, CUcontext context, struct event **taken);
void bfc_fence_events_store(struct event **store, struct event *events);
void bfc_fence_events_purge(struct event **store);

static inline CUresult bfc_fence_events_record(const struct bfc_driver *driver,
                                               const struct event *event) {
    CUresult result = CUDA_SUCCESS;
    for (; event && result == CUDA_SUCCESS; event = event->next)
        result = driver->cuCtxRecordEvent(event->context, event->handle);
    return result;
}

/* Returns CUDA_SUCCESS if all events of the list are complete, CUDA_ERROR_NOT_READY, or an error.
 * An event whose context is about to end counts as not ready until the context has ended, or the
 * attempt to end it has failed. `users` does not count a query; the caller counts it. */
static inline CUresult bfc_fence_events_query(const struct bfc_driver *driver,
                                              const struct event *event) {
    CUresult result = CUDA_SUCCESS;
    for (; event && result == CUDA_SUCCESS; event = event->next)
        if (LIKELY(bfc_fence_event_liveness(event) == LIVE))
            result = driver->cuEventQuery(event->handle);
        else if (bfc_fence_event_liveness(event) == ENDING)
            result = CUDA_ERROR_NOT_READY;
    return result;
}
CUresult bfc_fence_events_synchronize(const struct bfc_driver *driver, struct event *events);

/* Makes the later work of `context` wait on the device for all events of the list. If the context
 * of an event is about to end, returns CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. `users` does not
 * count this call; the caller counts it. */
static inline CUresult bfc_fence_events_order(const struct bfc_driver *driver, CUcontext context,
                                              const struct event *event) {
    CUresult result = CUDA_SUCCESS;
    for (; event && result == CUDA_SUCCESS; event = event->next)
        if (LIKELY(bfc_fence_event_liveness(event) == LIVE))
            result = driver->cuCtxWaitEvent(context, event->handle);
        else if (bfc_fence_event_liveness(event) == ENDING)
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return result;
}

#endif
