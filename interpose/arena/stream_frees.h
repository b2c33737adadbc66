/*
 * Frees in the order of a stream (cuMemFreeAsync of a pooled block).
 *
 * The program has ordered all use of such a block before this point of the stream. So the block
 * waits for an event recorded there and for nothing else: neither for the rest of the context nor
 * for earlier frees. Fences cannot express that, since they complete in order; so the block is
 * awaited (pool/pool.h) until its own event is complete. A later event of the same stream implies
 * the earlier ones.
 *
 * Thread-safe; no lock is held across a driver call.
 */
#ifndef BFC_INTERPOSE_STREAM_FREES_H
#define BFC_INTERPOSE_STREAM_FREES_H

#include "interpose/arena/state.h"

struct bfc_stream_frees;

/* What a stream is asked, in the variant that the program's call was of. */
struct bfc_stream_calls {
    CUresult (*get_context)(CUstream, CUcontext *);
    CUresult (*get_id)(CUstream, unsigned long long *); /* may be NULL */
    CUresult (*is_capturing)(CUstream, CUstreamCaptureStatus *);
    CUresult (*record)(CUevent, CUstream);
    CUresult (*synchronize)(CUstream);
};

/* NULL: the host has no memory. Destroying forgets the events, which end with their contexts. */
struct bfc_stream_frees *bfc_stream_frees_create(void);
void bfc_stream_frees_destroy(struct bfc_stream_frees *frees);

/*
 * Frees the block when the stream, one of `context`, has come so far. On an error, the driver's own
 * but for a stream that captures (CUDA_ERROR_INVALID_VALUE) and for a lack of host memory, the
 * block stays the program's.
 */
CUresult bfc_stream_frees_free(const struct bfc_driver *driver, struct bfc_arena *arena,
                               CUdeviceptr pointer, const struct bfc_stream_calls *calls,
                               CUstream stream, CUcontext context);

/* Looks which blocks are ready, at a bounded number of queries, and tells the pool. */
void bfc_stream_frees_poll(const struct bfc_driver *driver, struct bfc_arena *arena);

/* On return every block is the pool's that was ready before the call, whatever other threads do. */
void bfc_stream_frees_settle(const struct bfc_driver *driver, struct bfc_arena *arena);

/* The same, and if none became ready, waits until some do, nothing is awaited, or the time has
 * passed. True: some did since the call began. */
bool bfc_stream_frees_wait(const struct bfc_driver *driver, struct bfc_arena *arena,
                           uint64_t timeout_ns);

/*
 * A context is about to end: no event of it is queried any more, and no query of one is under way.
 * It is either forgotten then, or resumed if it has not ended after all.
 */
void bfc_stream_frees_suspend_context(struct bfc_stream_frees *frees, CUcontext context);
void bfc_stream_frees_resume_context(struct bfc_stream_frees *frees, CUcontext context);

/* A context that events were recorded in has ended: nothing of it is under way. */
void bfc_stream_frees_forget_context(struct bfc_stream_frees *frees, CUcontext context);

#endif
