/*
 * CUDA events of fences: making and destroying them, waiting for them, and their liveness when a
 * context ends.
 */
#include "interpose/fences/fence_event.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/context/capture.h"
#include "interpose/driver/current.h"

/*
 * Counts itself as a user, then checks the event's liveness; a thread that ends a context sets the
 * liveness, then reads the count. So of the two, one sees the other.
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

/* Who waits for the event sleeps where the program asked for that, as in its own waits. */
static unsigned flags_of_event(const struct bfc_driver *driver) {
    unsigned flags = 0;
    bool sleeps = driver->cuCtxGetFlags && driver->cuCtxGetFlags(&flags) == CUDA_SUCCESS &&
                  (flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_BLOCKING_SYNC;
    return CU_EVENT_DISABLE_TIMING | (sleeps ? CU_EVENT_BLOCKING_SYNC : 0u);
}

/*
 * An event belongs to the context that is current when it is made. The gate is not passed, so the
 * thread is relaxed even where no capture was seen yet.
 */
CUresult bfc_fence_event_make_handle(const struct bfc_driver *driver, CUcontext context,
                                     CUevent *handle) {
    CUresult result = driver->cuCtxPushCurrent_v2(context);
    if (result != CUDA_SUCCESS)
        return result;
    CUstreamCaptureMode mode = bfc_capture_relax_now(driver);
    result = driver->cuEventCreate(handle, flags_of_event(driver));
    bfc_capture_restore(driver, mode);
    bfc_current_pop(driver);
    return result;
}

CUresult bfc_fence_events_make(const struct bfc_driver *driver, CUcontext context,
                               struct event **made) {
    struct event *event = calloc(1, sizeof *event);
    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = bfc_fence_event_make_handle(driver, context, &event->handle);
    if (result != CUDA_SUCCESS) {
        free(event);
        return result;
    }
    event->context = context;
    event->next = *made;
    *made = event;
    return CUDA_SUCCESS;
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
