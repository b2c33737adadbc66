/*
 * Fences: a free records one, so that its block is handed out only when the fence is complete, or
 * when later work waits for it on the device.
 *
 * A fence is a number, which rises within one arena, with one recorded event for each context whose
 * work may still use the block (cuCtxRecordEvent, CUDA 12.5). A free gets its number before the
 * events are recorded, and after all of the block's work was submitted. So of two fences over the
 * same contexts, the events of the higher one also cover the work of the lower one, in whatever
 * order two threads record them. Fences complete in the order of their numbers: all up to some
 * number are complete.
 *
 * Thread-safe. No function holds a lock across a driver call. Only bfc_fences_wait,
 * bfc_fences_synchronize and bfc_fences_suspend_context may block for long. A call that enters the
 * gate (interpose/context/capture.h) waits while another thread begins a capture.
 */
#ifndef BFC_INTERPOSE_FENCES_H
#define BFC_INTERPOSE_FENCES_H

#include "interpose/driver/driver.h"
#include "pool/pool.h"

struct bfc_fences;

/* bfc_fences_create returns NULL if the host has no memory. bfc_fences_destroy does not destroy the
 * CUDA events, which end with their contexts. */
struct bfc_fences *bfc_fences_create(void);
void bfc_fences_destroy(struct bfc_fences *fences);

/* Records a fence in all of `contexts` (`count` ≥ 1 different ones), inside the gate
 * (interpose/context/capture.h). On an error, which is the driver's, there is no fence; while a
 * capture is under way, or one of the contexts is about to end, the error is
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. */
CUresult bfc_fences_record(struct bfc_fences *fences, const struct bfc_driver *driver,
                           const CUcontext *contexts, size_t count, bfc_fence *fence);

/* Returns the highest fence known to be complete, after a few queries at most. The driver is not
 * asked while a capture is under way. */
bfc_fence bfc_fences_poll(struct bfc_fences *fences, const struct bfc_driver *driver);

/* Waits, a second at most, until the polls under way have ended. Only then do other threads see all
 * that these polls have found to be complete. Returns whether there were any polls. */
bool bfc_fences_await_polls(struct bfc_fences *fences);

/* Blocks until `fence` is complete or `timeout_ns` have passed (UINT64_MAX: no limit). Returns the
 * highest fence known to be complete. If there is no limit and `error` is not NULL, `*error` is set
 * to the driver's error or to CUDA_SUCCESS. */
bfc_fence bfc_fences_wait(struct bfc_fences *fences, const struct bfc_driver *driver,
                          bfc_fence fence, uint64_t timeout_ns, CUresult *error);

/* Blocks until all work that this fence covers is complete, and returns the driver's error. */
CUresult bfc_fences_synchronize(struct bfc_fences *fences, const struct bfc_driver *driver,
                                bfc_fence fence);

/* To be called after a wait for all work of `context`; `last` is what bfc_fences_last returned when
 * that wait began. If all pending fences cover this context alone, notes that the recorded ones up
 * to `last` are complete. */
void bfc_fences_pass(struct bfc_fences *fences, CUcontext context, bfc_fence last);

/* Return the highest fence that is recorded (if the record of a higher one fails, its number is
 * used again), and the highest that is known to be complete; BFC_NO_FENCE: there is none. */
bfc_fence bfc_fences_last(struct bfc_fences *fences);
bfc_fence bfc_fences_known(struct bfc_fences *fences);

/* The use of a fence while a pending block is handed out: begun by bfc_fences_announce, ended by
 * bfc_fences_order or bfc_fences_retract. */
struct bfc_order {
    bfc_fence fence;
    /* the fence's events, which are pinned; NULL: nothing has to wait for the fence any more */
    struct event *events;
};

/* Publishes that a block is about to be handed out under `fence`, and enters the gate:
 * bfc_fences_order or bfc_fences_retract must follow at once. False: something captures or is about
 * to, and the gate was not entered; the fence stays published. */
bool bfc_fences_announce(struct bfc_fences *fences, bfc_fence fence, struct bfc_order *order);
void bfc_fences_retract(struct bfc_fences *fences, const struct bfc_order *order);

/* Makes all later work of `context` wait on the device for the fence, unless the fence is complete
 * or that work already waits for a later one. All calls have the same `context`, which owns the
 * pool. */
CUresult bfc_fences_order(struct bfc_fences *fences, const struct bfc_driver *driver,
                          CUcontext context, const struct bfc_order *order);

/* Returns the highest fence that bfc_fences_announce has published. A thread that publishes one
 * later sees everything that the caller did before this call. */
bfc_fence bfc_fences_announced(struct bfc_fences *fences);

/*
 * To be called before a context ends: bfc_fences_suspend_context waits for calls that use the
 * context's events, but a second at most, since such a call may return only after the end. Until
 * bfc_fences_conclude_context no further call uses those events, the context's fences do not
 * complete, and no fence is recorded in it.
 *
 * bfc_fences_conclude_context: if the context has `ended`, its events count as complete, and no
 * call may be using them any more; if the attempt to end it has failed, they are used again.
 */
void bfc_fences_suspend_context(struct bfc_fences *fences, CUcontext context);
void bfc_fences_conclude_context(struct bfc_fences *fences, CUcontext context, bool ended);

#endif
