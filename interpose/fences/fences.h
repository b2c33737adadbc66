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
 * Thread-safe. No function holds a lock across a driver call. Only bfc_fences_wait,
 * bfc_fences_synchronize and bfc_fences_suspend_context may block for long; a call that passes the
 * gate waits while another thread begins a capture.
 */
#ifndef BFC_INTERPOSE_FENCES_H
#define BFC_INTERPOSE_FENCES_H

#include "interpose/driver/driver.h"
#include "pool/pool.h"

struct bfc_fences;

/* bfc_fences_create returns NULL if the host has no memory. bfc_fences_destroy forgets the events,
 * which the driver destroys with their contexts. */
struct bfc_fences *bfc_fences_create(void);
void bfc_fences_destroy(struct bfc_fences *fences);

/* Records a fence in all of `contexts` (each no more than once, `count` ≥ 1), passing the gate
 * (interpose/context/capture.h). On an error, which is the driver's, there is no fence; while a
 * capture is under way, or one of the contexts is about to end, it is
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. */
CUresult bfc_fences_record(struct bfc_fences *fences, const struct bfc_driver *driver,
                           const CUcontext *contexts, size_t count, bfc_fence *fence);

/* Returns the highest fence known to be complete. Makes a few queries at most, and none while a
 * capture is under way. */
bfc_fence bfc_fences_poll(struct bfc_fences *fences, const struct bfc_driver *driver);

/* While a poll asks about a fence, that fence does not count as complete for other threads: waits,
 * a second at most, until the polls under way have ended. Returns whether there were any. */
bool bfc_fences_await_polls(struct bfc_fences *fences);

/* Blocks until `fence` is complete or `timeout_ns` have passed (UINT64_MAX: no limit). Returns the
 * highest fence known to be complete. Without a limit, `*error` is set to the driver's error if
 * `error` is not NULL; with a limit, `*error` does not change. */
bfc_fence bfc_fences_wait(struct bfc_fences *fences, const struct bfc_driver *driver,
                          bfc_fence fence, uint64_t timeout_ns, CUresult *error);

/* Blocks until all work that this fence covers is complete, and returns the driver's error. */
CUresult bfc_fences_synchronize(struct bfc_fences *fences, const struct bfc_driver *driver,
                                bfc_fence fence);

/* Notes a wait for all work of `context` that began when `last` was the last fence drawn: the
 * fences up to it are complete, as far as they are recorded and all pending ones are over this
 * context alone. */
void bfc_fences_pass(struct bfc_fences *fences, CUcontext context, bfc_fence last);

/* Return the last fence drawn, and the last one known to be complete; BFC_NO_FENCE: none is. */
bfc_fence bfc_fences_last(struct bfc_fences *fences);
bfc_fence bfc_fences_known(struct bfc_fences *fences);

/* Stands for handing out a pending block, from bfc_fences_announce to the call that completes or
 * retracts it. */
struct bfc_order {
    bfc_fence fence;
    /* the fence's events, which are pinned; NULL: there is nothing left to wait for */
    struct event *events;
};

/* Publishes that a block is about to be handed out under `fence`, and passes the gate:
 * bfc_fences_order or bfc_fences_retract must follow at once. False: something captures or is about
 * to, and the gate was not passed; the fence stays published. */
bool bfc_fences_announce(struct bfc_fences *fences, bfc_fence fence, struct bfc_order *order);
void bfc_fences_retract(struct bfc_fences *fences, const struct bfc_order *order);

/* Makes all later work of `context` wait on the device for the fence, unless the fence is complete
 * or that work already waits for a later fence. `context` is the same in all calls: the one that
 * owns the pool. */
CUresult bfc_fences_order(struct bfc_fences *fences, const struct bfc_driver *driver,
                          CUcontext context, const struct bfc_order *order);

/* Returns the highest fence published. A thread that publishes a fence later sees everything that
 * the caller did before this call. */
bfc_fence bfc_fences_announced(struct bfc_fences *fences);

/*
 * Call bfc_fences_suspend_context before a context ends. After it returns, no call uses the
 * context's events, except one that has blocked for longer than a second (the end may depend on
 * what its thread does next), and until bfc_fences_conclude_context its fences do not complete, and
 * no fence is recorded in it.
 *
 * bfc_fences_conclude_context says that the context has `ended`, so that its events count as
 * complete, or that it has not ended after all. If it has, no call with its events may be under
 * way.
 */
void bfc_fences_suspend_context(struct bfc_fences *fences, CUcontext context);
void bfc_fences_conclude_context(struct bfc_fences *fences, CUcontext context, bool ended);

#endif
