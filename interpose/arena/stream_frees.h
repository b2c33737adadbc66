/*
 * Frees in the order of a stream (cuMemFreeAsync of a pooled block).
 *
 * A program that frees a block in a stream has submitted all use of the block before this place in
 * the stream. So the block becomes ready for reuse as soon as an event that is recorded there is
 * complete; it waits neither for the rest of the context nor for earlier frees in other streams. A
 * fence cannot express that, since fences complete in order. So the block gets an event of its own
 * and is awaited (pool/pool.h) until that event is complete.
 *
 * Thread-safe; no lock is held across a driver call.
 */
#ifndef BFC_INTERPOSE_STREAM_FREES_H
#define BFC_INTERPOSE_STREAM_FREES_H

#include "interpose/arena/state.h"

struct bfc_stream_frees;

/* The driver's functions for a stream: those for per-thread default streams if the program called
 * cuMemFreeAsync_ptsz, else the usual ones. */
struct bfc_stream_calls {
    CUresult (*get_context)(CUstream, CUcontext *);
    CUresult (*get_id)(CUstream, unsigned long long *); /* NULL: the driver lacks the call */
    CUresult (*is_capturing)(CUstream, CUstreamCaptureStatus *);
    CUresult (*record)(CUevent, CUstream);
    CUresult (*synchronize)(CUstream);
};

/* bfc_stream_frees_create returns NULL if the host has no memory. bfc_stream_frees_destroy does not
 * destroy the CUDA events, which end with their contexts. */
struct bfc_stream_frees *bfc_stream_frees_create(void);
void bfc_stream_frees_destroy(struct bfc_stream_frees *frees);

/* Frees a block once the work that `stream`, a stream of `context`, has now is complete. On an
 * error the program keeps the block. The error is the driver's own, or CUDA_ERROR_INVALID_VALUE if
 * the stream captures, or CUDA_ERROR_OUT_OF_MEMORY if the host has no memory. */
CUresult bfc_stream_frees_free(const struct bfc_driver *driver, struct bfc_arena *arena,
                               CUdeviceptr pointer, const struct bfc_stream_calls *calls,
                               CUstream stream, CUcontext context);

/* Queries a bounded number of events. Blocks whose events are complete become ready for reuse. */
void bfc_stream_frees_poll(const struct bfc_driver *driver, struct bfc_arena *arena);

/* Makes every block ready for reuse whose event was complete before the call, whatever other
 * threads do. */
void bfc_stream_frees_settle(const struct bfc_driver *driver, struct bfc_arena *arena);

/* Makes blocks ready as bfc_stream_frees_settle does. If none became ready, waits until one does,
 * until no block waits for an event any more, or until `timeout_ns` have passed. True: blocks have
 * become ready since the call began. */
bool bfc_stream_frees_wait(const struct bfc_driver *driver, struct bfc_arena *arena,
                           uint64_t timeout_ns);

/* bfc_stream_frees_suspend_context: a context is about to end, so from now on none of its events is
 * queried; waits, for a second at most, for queries under way. bfc_stream_frees_conclude_context:
 * if the context has `ended`, its events count as complete; if it lives on after all, they are
 * queried again. */
void bfc_stream_frees_suspend_context(struct bfc_stream_frees *frees, CUcontext context);
void bfc_stream_frees_conclude_context(struct bfc_stream_frees *frees, CUcontext context,
                                       bool ended);

#endif
