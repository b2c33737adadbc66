/*
 * Fences: a free records one, so that its block is not handed out too early.
 *
 * A fence is a number, drawn in rising order for one arena, with one recorded event for each
 * context whose work may still use the block (cuCtxRecordEvent, CUDA 12.5). The number is drawn
 * before the events are recorded, and so after all of the block's work was submitted: of two fences
 * over the same contexts, the later one's events cover the earlier one's work, in whatever order
 * two threads record them. Fences complete in the order of their numbers: the fences reported
 * complete are always a prefix.
 *
 * Thread-safe. Nothing here holds a lock across a driver call; only bfc_fences_wait blocks.
 */
#ifndef BFC_INTERPOSE_FENCES_H
#define BFC_INTERPOSE_FENCES_H

#include "interpose/driver/driver.h"
#include "pool/pool.h"

struct bfc_fences;

/* NULL: the host has no memory. Destroying forgets the events, which the driver destroys with their
 * contexts. */
struct bfc_fences *bfc_fences_create(void);
void bfc_fences_destroy(struct bfc_fences *fences);

/*
 * Records a fence in all of `contexts` (each no more than once, `count` ≥ 1), passing the gate
 * (interpose/context/capture.h). On an error, which is the driver's, there is no fence; while a
 * capture is under way, or one of the contexts is about to end, it is
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.
 */
CUresult bfc_fences_record(struct bfc_fences *fences, const struct bfc_driver *driver,
                           const CUcontext *contexts, size_t count, bfc_fence *fence);

/*
 * The highest fence known to be complete. Makes a few queries at most, and none while a capture is
 * under way.
 */
bfc_fence bfc_fences_poll(struct bfc_fences *fences, const struct bfc_driver *driver);

/* How many polls have ended so far, or have begun. What one is asking about is not known as
 * complete to others before it ends. */
uint64_t bfc_fences_polls(struct bfc_fences *fences, bool begun);

/*
 * Blocks until `fence` is complete or `timeout_ns` have passed (UINT64_MAX: no limit). Returns the
 * highest fence known to be complete; `error`, if not NULL, gets the driver's error.
 */
bfc_fence bfc_fences_wait(struct bfc_fences *fences, const struct bfc_driver *driver,
                          bfc_fence fence, uint64_t timeout_ns, CUresult *error);

/* Blocks until all that this one fence covers is complete, and returns the driver's error. */
CUresult bfc_fences_synchronize(struct bfc_fences *fences, const struct bfc_driver *driver,
                                bfc_fence fence);

/* The last fence drawn: BFC_NO_FENCE if there was none. */
bfc_fence bfc_fences_last(struct bfc_fences *fences);

/* A pending hand-out, from bfc_fences_announce to the call that completes or retracts it. */
struct bfc_order {
    bfc_fence fence;
    struct event *events; /* held; NULL: nothing is left to be waited for */
};

/*
 * Publishes that a block is about to be handed out under `fence`, and passes the gate:
 * bfc_fences_order or bfc_fences_retract must follow at once. False: something captures, and the
 * gate was not passed; the fence stays published.
 */
bool bfc_fences_announce(struct bfc_fences *fences, bfc_fence fence, struct bfc_order *order);
void bfc_fences_retract(struct bfc_fences *fences, const struct bfc_order *order);

/*
 * Makes all later work of `context` wait on the device for the fence, unless it is complete or that
 * work already waits for a later fence. `context` is the same in all calls: the one that owns the
 * pool.
 */
CUresult bfc_fences_order(struct bfc_fences *fences, const struct bfc_driver *driver,
                          CUcontext context, const struct bfc_order *order);

/*
 * The highest fence published. A thread that publishes one later sees everything that the caller
 * did before this call.
 */
bfc_fence bfc_fences_announced(struct bfc_fences *fences);

/*
 * Call before a context ends. On return no call uses its events any more, except one that has
 * blocked for longer than a second (the end may depend on what its thread does next). Afterwards
 * either forget the context, or resume it if it has not ended after all. Meanwhile its fences do
 * not complete, and none is recorded in it.
 */
void bfc_fences_suspend_context(struct bfc_fences *fences, CUcontext context);
void bfc_fences_resume_context(struct bfc_fences *fences, CUcontext context);

/*
 * Call after the end of a context in which fences were recorded; no call with its events may be
 * under way.
 */
void bfc_fences_forget_context(struct bfc_fences *fences, CUcontext context);

#endif
