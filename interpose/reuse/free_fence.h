/*
 * The fence of a free: functions by which every way to free a block records a fence and gives the
 * block back to the pool. Thread-safe. No fence is recorded while a stream is capturing.
 */
#ifndef BFC_INTERPOSE_FREE_FENCE_H
#define BFC_INTERPOSE_FREE_FENCE_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/arena/state.h"
#include "interpose/context/capture.h"
#include "interpose/context/peers.h"
#include "interpose/fences/fences.h"

/* Contexts that one fence can cover: the owner and its peers. */
enum { BFC_FENCE_CONTEXTS = BFC_PEERS_MOST + 1 };

/* Remembers an error after which all calls in the arena's context fail. Returns `result`. */
CUresult bfc_reuse_latch_error(struct bfc_arena *arena, CUresult result);

static inline CUresult bfc_reuse_latch(struct bfc_arena *arena, CUresult result) {
    return LIKELY(result == CUDA_SUCCESS) ? result : bfc_reuse_latch_error(arena, result);
}

/* Remembers a fatal error of a program's call for all arenas whose contexts have failed. */
void bfc_reuse_note_failed(CUresult result);

static inline void bfc_reuse_note_failure(CUresult result) {
    if (UNLIKELY(result != CUDA_SUCCESS) && bfc_driver_is_fatal(result))
        bfc_reuse_note_failed(result);
}

/* Whether the error comes from peers that have failed, and not from the arena's own context. If so,
 * these peers are forgotten, and the caller may repeat its call. */
bool bfc_reuse_is_of_peer(const struct bfc_driver *driver, struct bfc_arena *arena,
                          CUresult result);

/* Whether the driver has refused a call of the library's own for a reason that does not concern the
 * program's call: a capture that no hook saw or that has just begun, or a lack of memory. The
 * program then gets no error; the library does without the call that was refused. */
static inline bool bfc_reuse_is_passing(CUresult result) {
    return bfc_is_capture_error(result) || result == CUDA_ERROR_OUT_OF_MEMORY;
}

/* Stores the contexts that may use the arena's blocks: the arena's own, if `owner` is true, and its
 * peers. Returns how many these are. */
size_t bfc_reuse_contexts_of(struct bfc_arena *arena, bool owner,
                             CUcontext contexts[BFC_FENCE_CONTEXTS]);
bool bfc_reuse_has_peers(struct bfc_arena *arena);

/* Gives the block back to the pool, pending until `fence` is complete (BFC_NO_FENCE: ready). */
static inline CUresult bfc_reuse_take_back(struct bfc_arena *arena, CUdeviceptr pointer,
                                           bfc_fence fence) {
    return bfc_pool_free(arena->pool, pointer, fence) == BFC_OK ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_VALUE;
}

static inline void bfc_reuse_raise_to(bfc_fence *field, bfc_fence fence) {
    bfc_fence before = bfc_load_seq_cst(field);
    while (before < fence && !bfc_compare_exchange_seq_cst(field, &before, fence))
        ;
}

/* Records a fence in `contexts`. If it covers a peer, or is recorded later than the free (`late`),
 * a wait for it on the device might never end. So mode ordered hands out no pending block until the
 * fence is complete (`lazy_until`). */
static inline CUresult bfc_reuse_record(const struct bfc_driver *driver, struct bfc_arena *arena,
                                        const CUcontext *contexts, size_t count, bool late,
                                        bfc_fence *fence) {
    CUstreamCaptureMode mode = bfc_capture_relax(driver);
    CUresult result = bfc_fences_record(arena->fences, driver, contexts, count, fence);
    bfc_capture_restore(driver, mode);
    if (result == CUDA_SUCCESS)
        bfc_events_count_fence(&arena->stats);
    bool peers = count > 1 || contexts[0] != arena->context;
    if (result == CUDA_SUCCESS && (late || peers))
        bfc_reuse_raise_to(&arena->lazy_until, *fence);
    /* A peer has just ended or failed. With this result the caller frees without a fence. */
    if (peers &&
        (result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_CONTEXT ||
         UNLIKELY(bfc_reuse_is_of_peer(driver, arena, result))))
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return bfc_reuse_latch(arena, result);
}

#endif
