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
 * Marks this moment in all of `contexts` (each no more than once, `count` ≥ 1), passing the gate
 * (interpose/capture.h). On an error, which is the driver's, there is no mark; while a capture is
 * under way it is CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.
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

/* A block that is to be handed out dirty, between the first of the following calls and another. */
struct bfc_order {
    bfc_mark mark;
    struct event *events; /* held; NULL: nothing is left to be waited for */
};

/*
 * Announces that a block is handed out under `mark`, and passes the gate: either `order` or
 * `retract` must follow at once. False: something captures; the announcement stands, no more.
 */
bool bfc_marks_announce(struct bfc_marks *marks, bfc_mark mark, struct bfc_order *order);
void bfc_marks_retract(struct bfc_marks *marks, const struct bfc_order *order);

/*
 * Makes all later work of `context`, always the same one, wait on the device for the mark, unless
 * it is complete or that work waits already for a later one.
 */
CUresult bfc_marks_order(struct bfc_marks *marks, const struct bfc_driver *driver,
                         CUcontext context, const struct bfc_order *order);

/* The highest mark announced; what is announced later sees all that the caller did before. */
bfc_mark bfc_marks_announced(struct bfc_marks *marks);

/* A context that marks were recorded in has ended: nothing of it is under way. */
void bfc_marks_forget_context(struct bfc_marks *marks, CUcontext context);

#endif
