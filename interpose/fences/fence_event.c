/* The CUDA events of fences: made, waited for, kept for reuse and freed; and what becomes of them
 * when their contexts end. */
#include "interpose/fences/fence_event.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/context/capture.h"
#include "interpose/driver/current.h"

/*
 * Counts the caller among the event's users, and then checks the event's liveness. A thread that
 * ends a context first sets the liveness and then reads the count, so at least one of the two
 * threads sees what the other wrote. False: the event is not live.
 */
static bool begin_use(struct event *event) {
    bfc_fetch_add_seq_cst(&event->users, 1);
    if (LIKELY(bfc_fence_event_liveness(event) == LIVE))
        return true;
    bfc_fetch_sub_release(&event->users, 1);
    return false;
}

static CUresult end_use(struct event *event, CUresult result) {
    bfc_fetch_sub_release(&event->users, 1);
    return result;
}

void bfc_fence_events_free(struct event *event) {
    while (event) {
        struct event *next = event->next;
        free(event);
        event = next;
    }
}

/* Returns the flags for an event of the current context. The host sleeps while it waits for the
 * event if the program has chosen that for its own waits in this context. */
static unsigned flags_of_event(const struct bfc_driver *driver) {
    unsigned flags = 0;
    bool sleeps = driver->cuCtxGetFlags && driver->cuCtxGetFlags(&flags) == CUDA_SUCCESS &&
                  (flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_BLOCKING_SYNC;
    return CU_EVENT_DISABLE_TIMING | (sleeps ? CU_EVENT_BLOCKING_SYNC : 0u);
}

/*
 * The context is made current, because an event belongs to the context that is current when it is
 * created. The thread's capture mode is relaxed even if no capture was seen yet: this call is
 * outside the gate, so the first capture may begin during it.
 */
static CUresult make_handle(const struct bfc_driver *driver, CUcontext context, CUevent *handle) {
    bool pushed;
    CUresult result = bfc_current_enter(driver, context, &pushed);
    if (result != CUDA_SUCCESS)
        return result;
    CUstreamCaptureMode mode = bfc_capture_relax_now(driver);
    result = driver->cuEventCreate(handle, flags_of_event(driver));
    bfc_capture_restore(driver, mode);
    bfc_current_leave(driver, pushed);
    return result;
}

CUresult bfc_fence_events_make(const struct bfc_driver *driver, CUcontext context,
                               struct event **made) {
    struct event *event = calloc(1, sizeof *event);
    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = make_handle(driver, context, &event->handle);
    if (result != CUDA_SUCCESS) {
        free(event);
        return result;
    }
    event->context = context;
    event->next = *made;
    *made = event;
    return CUDA_SUCCESS;
}

bool bfc_fence_events_take(struct event **store, CUcontext context, struct event **taken) {
    struct event **link = store;
    while (*link && ((*link)->context != context || bfc_fence_event_liveness(*link) != LIVE))
        link = &(*link)->next;
    struct event *event = *link;
    if (!event)
        return false;
    *link = event->next;
    event->next = *taken;
    *taken = event;
    return true;
}

void bfc_fence_events_store(struct event **store, struct event *events) {
    while (events) {
        struct event *event = events;
        events = event->next;
        if (bfc_fence_event_liveness(event) == DEAD) {
            free(event);
            continue;
        }
        event->next = *store;
        *store = event;
    }
}

void bfc_fence_events_purge(struct event **store) {
    struct event *stored = *store;
    *store = NULL;
    bfc_fence_events_store(store, stored);
}

static CUresult synchronize_event(const struct bfc_driver *driver, struct event *event) {
    if (begin_use(event))
        return end_use(event, driver->cuEventSynchronize(event->handle));
    return bfc_fence_event_liveness(event) == DEAD ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult bfc_fence_events_synchronize(const struct bfc_driver *driver, struct event *event) {
    CUresult result = CUDA_SUCCESS;
    for (; event && result == CUDA_SUCCESS; event = event->next)
        result = synchronize_event(driver, event);
    return result;
}

void bfc_fence_events_set_liveness(struct event *event, CUcontext context, enum liveness liveness) {
    for (; event; event = event->next)
        if (event->context == context && bfc_fence_event_liveness(event) != DEAD)
            bfc_store_seq_cst(&event->liveness, (unsigned char)liveness);
}
