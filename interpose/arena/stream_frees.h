/*
 * Frees in the order of a stream (cuMemFreeAsync of a pooled block).
 *
 * The program has submitted all use of such a block before this point of the stream. So the block
 * waits for an event that is recorded there, and for nothing else: neither for the rest of the
 * context nor for earlier frees. Fences cannot express that, since they complete in order.
 * Therefore the block is awaited (pool/pool.h) until its own event is complete. If a later event of
 * the same stream is complete, so are the earlier ones.
 *
 * Thread-safe; no lock is held across a driver call.
 */
#ifndef BFC_INTERPOSE_STREAM_FREES_H
#define BFC_INTERPOSE_STREAM_FREES_H

#include "interpose/arena/state.h"

struct bfc_stream_frees;

/* The driver's calls for a stream. They are those for per-thread default streams if the program's
 * call was of that variant. */
struct bfc_stream_calls {
    CUresult (*get_context)(CUstream, CUcontext *);
    CUresult (*get_id)(CUstream, unsigned long long *); /* may be NULL */
    CUresult (*is_capturing)(CUstream, CUstreamCaptureStatus *);
    CUresult (*record)(CUevent, CUstream);
    CUresult (*synchronize)(CUstream);
};

/* Creating returns NULL if the host has no memory. Destroying forgets the events, which end with
 * their contexts. */
struct bfc_stream_frees *bfc_stream_frees_create(void);
void bfc_stream_frees_destroy(struct bfc_stream_frees *frees);

/* Frees a block once the present work of `stream`, which is one of `context`, is complete. On an
 * error the block stays the program's. The error is the driver's own, or CUDA_ERROR_INVALID_VALUE
 * for a stream that captures, or CUDA_ERROR_OUT_OF_MEMORY if the host has no memory. */
CUresult bfc_stream_frees_free(const struct bfc_driver *driver, struct bfc_arena *arena,
                               CUdeviceptr pointer, const struct bfc_stream_calls *calls,
                               CUstream stream, CUcontext context);

/* Queries a bounded number of events, and makes the blocks of complete ones ready in the pool. */
void bfc_stream_frees_poll(const struct bfc_driver *driver, struct bfc_arena *arena);

/* Makes every block ready in the pool whose event was complete before the call, whatever other
 * threads do. */
void bfc_stream_frees_settle(const struct bfc_driver *driver, struct bfc_arena *arena);

/* Does what bfc_stream_frees_settle does. If no block became ready, waits until one does, until no
 * block waits for an event any more, or until the time has passed. True: blocks have become ready
 * since the call began. */
bool bfc_stream_frees_wait(const struct bfc_driver *driver, struct bfc_arena *arena,
                           uint64_t timeout_ns);

/* bfc_stream_frees_suspend_context: a context is about to end; from then on no event of the context
 * is queried, and no such query is under way. bfc_stream_frees_conclude_context: the context has
 * `ended`, so that its events count as complete, or it has not ended after all, so that they are
 * queried again. */
void bfc_stream_frees_suspend_context(struct bfc_stream_frees *frees, CUcontext context);
void bfc_stream_frees_conclude_context(struct bfc_stream_frees *frees, CUcontext context,
                                       bool ended);

#endif
