/*
 * The only stream: while all work of the process goes to one stream of one context, a block that is
 * freed can be handed out at once, since the work of its next owner runs after that of its last.
 * The legacy stream and one blocking stream count as one: each waits for the other's work.
 *
 * A submission to another stream ends that: before it goes on, all later work of the context is
 * made to wait on the device for the work of the stream that was alone. From then on there are many
 * streams, until a trial finds that there is one again.
 *
 * Thread-safe. A thread that ends the state of one stream may call the driver; it holds a lock of
 * this file alone.
 */
#ifndef BFC_INTERPOSE_ONLY_STREAM_H
#define BFC_INTERPOSE_ONLY_STREAM_H

#include "interpose/table/counter.h"
#include "pool/pool.h"

/* To be called before any hook is given out, if submissions are to be counted. */
void bfc_only_stream_begin_process(void);

/* Makes a stream the only one, or ends that state, before a submission to it goes on. While the
 * gate is closed, calls the function that was given first, and returns its error. */
CUresult bfc_only_stream_meet(CUstream stream);

/*
 * From bfc_only_stream_close to bfc_only_stream_open every submission and every other use of memory
 * (bfc_stay_awake) comes to bfc_only_stream_meet, which calls `wake` until the gate is open or
 * `wake` returns an error. Those that began before are counted by bfc_submissions_count; if
 * bfc_only_stream_close returns false, because the kernel has no barrier for all threads, one of
 * them may be missed.
 */
bool bfc_only_stream_close(CUresult (*wake)(void));
void bfc_only_stream_open(void);

/* Whether all work may go to one stream at present: a cheap look, to be confirmed by
 * bfc_only_stream_orders. */
static inline bool bfc_only_stream_may_be(void) {
    CUstream only = bfc_load_relaxed(&bfc_only.stream);
    return only != BFC_STREAMS_MANY && only != BFC_STREAM_CHANGING;
}

/* To be called just before a block is given back to its pool. Returns 0 if work in another stream
 * could use the memory before the block's last work is done, so that the block needs a fence. Else
 * it may be handed out at once; the result counts such frees. The caller has made sure that no
 * peer, other context or process can use the memory. */
uint64_t bfc_only_stream_orders(void);

/* Ends the state of one stream, until a trial succeeds. After bfc_only_stream_bar no trial may
 * begin until each call of it was followed by one of bfc_only_stream_unbar. */
void bfc_only_stream_leave(void);
void bfc_only_stream_bar(void);
void bfc_only_stream_unbar(void);

/* From now on some submissions may be unseen, because of `what`: no stream is the only one any
 * more, which the log tells. */
void bfc_only_stream_hide(const char *what);

/* Tells the log and bfcstat that submissions may be unseen, if bfc_only_stream_hide was called
 * before there were settings or a segment. */
void bfc_only_stream_tell_hidden(void);

/* The stream is about to be destroyed, and its handle may come to mean another. */
void bfc_only_stream_destroyed(CUstream stream);

/* Until bfc_only_stream_release nothing changes, and the only stream is not destroyed.
 * bfc_only_stream_hold returns the only stream, or one of the values in counter.h that are no
 * streams. Not reentrant; no function of this header may be called in between. */
CUstream bfc_only_stream_hold(void);
void bfc_only_stream_release(void);

/*
 * A trial finds out whether a program with many streams has come back to one. It begins at a moment
 * at which no thread is inside a submission. From then on the stream of each submission is compared
 * with that of the first; a second stream ends the trial. Work from before the moment may still run
 * in any stream, so no block is ready at once until all of that work is known to be complete: then
 * the trial has succeeded.
 *
 * bfc_only_stream_try begins a trial if there is no reason against one and the last ended long
 * enough ago, and returns its number, or 0. The caller then records a fence, and names it and the
 * `sequence` of its arena by bfc_only_stream_await. That fence covers the work from before, so the
 * trial succeeds when bfc_only_stream_completed is told that the fence is complete; or when
 * bfc_only_stream_waited is told of a wait, begun later, for all work of the process.
 */
struct bfc_moment bfc_only_stream_moment(void);
uint64_t bfc_only_stream_try(void);
void bfc_only_stream_await(uint64_t trial, uint64_t sequence, bfc_fence fence);
void bfc_only_stream_completed(uint64_t sequence, bfc_fence complete);
void bfc_only_stream_waited(const struct bfc_moment *moment);

/* Tells of a wait for the stream's work that began when bfc_only_stream_freed returned `freed`. */
uint64_t bfc_only_stream_freed(void);
void bfc_only_stream_waited_for(CUstream stream, uint64_t freed);

#endif
