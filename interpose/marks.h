/*
 * Marks: what a free leaves behind, so that the block is not handed out too early.
 *
 * A mark is a number, drawn in rising order for one domain, with one recorded event for each
 * context whose work may still use the block (cuCtxRecordEvent, CUDA 12.5). The number is drawn
 * before the events are recorded, and so after all of the block's work was submitted: of two marks
 * over the same contexts, the later one's events cover the earlier one's work, in whatever order
 * two threads record them. Marks complete in the order of their numbers; what is said to be
 * complete is always a prefix.
 *
 * Thread-safe. Nothing here holds a lock across a driver call; only bfc_marks_wait blocks.
 */
#ifndef BFC_INTERPOSE_MARKS_H
#define BFC_INTERPOSE_MARKS_H

#include "interpose/driver.h"
#include "pool/pool.h"

struct bfc_marks;

/* NULL: the host has no memory. Destroying forgets the events, which end with their contexts. */
struct bfc_marks *bfc_marks_create(void);
void bfc_marks_destroy(struct bfc_marks *marks);

/*
 * Marks this moment in all of `contexts` (each no more than once, `count` ≥ 1). Not while a capture
 * is under way: the caller holds the gate (interpose/capture.h). On an error, which is the
 * driver's, there is no mark.
 */
CUresult bfc_marks_record(struct bfc_marks *marks, const struct bfc_driver *driver,
                          const CUcontext *contexts, size_t count, bfc_mark *mark);

/* The highest mark known to be complete. At most a few queries; none while a capture is under way.
 */
bfc_mark bfc_marks_poll(struct bfc_marks *marks, const struct bfc_driver *driver);

/*
 * Blocks until `mark` is complete or `timeout_ns` have passed (UINT64_MAX: no limit). Returns the
 * highest mark known to be complete; `error`, if not NULL, gets the driver's error.
 */
bfc_mark bfc_marks_wait(struct bfc_marks *marks, const struct bfc_driver *driver, bfc_mark mark,
                        uint64_t timeout_ns, CUresult *error);

/* Blocks until all that this one mark covers is complete, and returns the driver's error. */
CUresult bfc_marks_synchronize(struct bfc_marks *marks, const struct bfc_driver *driver,
                               bfc_mark mark);

/* The last mark drawn: BFC_NO_MARK if there was none. */
bfc_mark bfc_marks_last(struct bfc_marks *marks);

/*
 * Makes all later work of `context` wait on the device for `mark`, if it is not complete. The
 * caller holds the gate.
 */
CUresult bfc_marks_order(struct bfc_marks *marks, const struct bfc_driver *driver,
                         CUcontext context, bfc_mark mark);

/* A context that marks were recorded in has ended: nothing of it is under way. */
void bfc_marks_forget_context(struct bfc_marks *marks, CUcontext context);

#endif
