/*
 * The only stream: while all work of the process goes to one stream of one context, a block that is
 * freed can be handed out at once, since the work of its next owner runs after the work of its last
 * owner. The legacy stream and one blocking stream count as one, since each waits for the other's
 * work.
 *
 * A call that submits work to another stream ends the state of one stream: before the call goes on,
 * all later work of the context is made to wait on the device for the work of the only stream. From
 * then on there are many streams, until an attempt to return to one succeeds (a trial, see below).
 *
 * Thread-safe. A thread that ends the state of one stream calls the driver meanwhile, and holds
 * only the lock of only_stream.c.
 */
#ifndef BFC_INTERPOSE_ONLY_STREAM_H
#define BFC_INTERPOSE_ONLY_STREAM_H

#include "interpose/table/counter.h"
#include "pool/pool.h"

/* To be called before the program gets any hook, if submissions are to be counted. */
void bfc_only_stream_begin_process(void);

/* To be called before a submission to the stream goes on: makes the stream the only one, or ends
 * the state of one stream. After bfc_only_stream_close it first calls the function `wake` that was
 * passed there. If `wake` returns an error, so does this, and the submission must be refused with
 * it. */
CUresult bfc_only_stream_meet(CUstream stream);

/*
 * From bfc_only_stream_close to bfc_only_stream_open, every submission and every other use of
 * memory (bfc_stay_awake) first calls bfc_only_stream_meet, which calls `wake` until
 * bfc_only_stream_open was called or `wake` returns an error. Submissions that began before
 * bfc_only_stream_close are counted by bfc_submissions_count. But some of them may be missed if
 * bfc_only_stream_close returns false, because the kernel has no memory barrier for all threads.
 */
bool bfc_only_stream_close(CUresult (*wake)(void));
void bfc_only_stream_open(void);

/* Whether all work may go to one stream at present: a quick test before the exact one, by which
 * bfc_only_stream_orders decides whether a free needs no fence. */
static inline bool bfc_only_stream_may_be(void) {
    CUstream only = bfc_load_relaxed(&bfc_only.stream);
    return only != BFC_STREAMS_MANY && only != BFC_STREAM_CHANGING;
}

/* Whether there has been one stream since the process began, or at least for some 500 frees. */
bool bfc_only_stream_lasts(void);

/* To be called just before a freed block goes back to its pool. Returns 0 if the block needs a
 * fence, since work in another stream could use its memory before the last work on it is done.
 * Otherwise the block may be handed out at once, and the result is the number of such frees so far.
 * The caller has made sure that no peer, other context or process can use the memory. */
uint64_t bfc_only_stream_orders(void);

/* bfc_only_stream_leave ends the state of one stream, until a trial (see below) succeeds.
 * bfc_only_stream_bar does so too, and no trial begins until bfc_only_stream_unbar was called as
 * often as bfc_only_stream_bar. */
void bfc_only_stream_leave(void);
void bfc_only_stream_bar(void);
void bfc_only_stream_unbar(void);

/* From now on work may be submitted by calls without a hook, because of `what`: until the process
 * ends, no stream counts as the only one, and a message in the log names `what`. */
void bfc_only_stream_hide(const char *what);

/* Tells the log and bfcstat the reason that bfc_only_stream_hide was given, if that was called
 * before the settings were read or the segment for bfcstat was made. */
void bfc_only_stream_tell_hidden(void);

/* To be called before the program destroys the stream, whose handle the driver may then give to
 * another stream. */
void bfc_only_stream_destroyed(CUstream stream);

/* Between bfc_only_stream_hold and bfc_only_stream_release the state does not change, and the only
 * stream is not destroyed. bfc_only_stream_hold returns the only stream, or one of the values of
 * interpose/table/counter.h that are no streams. No other function of this header may be called in
 * between. */
CUstream bfc_only_stream_hold(void);
void bfc_only_stream_release(void);

/*
 * A trial finds out whether a program that used many streams has come back to using one. It begins
 * when no thread is inside a submission. From then on the stream of each submission is compared
 * with the stream of the trial's first submission, and a second stream ends the trial. Work that
 * was submitted before the trial may still run in any stream. So frees take fences until all of
 * that work is known to be complete: then the trial has succeeded, and there is an only stream
 * again.
 *
 * bfc_only_stream_try begins a trial if nothing forbids one and the last was long enough ago, and
 * returns its number, or 0. The caller then records a fence, and passes that fence and the
 * `sequence` of its arena to bfc_only_stream_await. The fence covers all work from before the
 * trial, so the trial succeeds when bfc_only_stream_completed is told that the fence is complete.
 * It also succeeds when bfc_only_stream_waited is told of a host wait for all work of the process
 * that began after the trial; `moment` is what bfc_only_stream_moment returned as that wait began.
 */
struct bfc_moment bfc_only_stream_moment(void);
uint64_t bfc_only_stream_try(void);
void bfc_only_stream_await(uint64_t trial, uint64_t sequence, bfc_fence fence);
void bfc_only_stream_completed(uint64_t sequence, bfc_fence complete);
void bfc_only_stream_waited(const struct bfc_moment *moment);

/* bfc_only_stream_waited_for tells that the host has waited for the stream's work, so that the
 * blocks that were freed without a fence before that wait are safe in any stream; `freed` is what
 * bfc_only_stream_freed returned just before the wait began. */
uint64_t bfc_only_stream_freed(void);
void bfc_only_stream_waited_for(CUstream stream, uint64_t freed);

#endif
