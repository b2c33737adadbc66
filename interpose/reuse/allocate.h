/*
 * Handing out blocks of an arena's pool. In mode ordered a pending block is handed out at once, and
 * all later work of the pool's context waits for the block's fence on the device. Thread-safe.
 */
#ifndef BFC_INTERPOSE_ALLOCATE_H
#define BFC_INTERPOSE_ALLOCATE_H

#include "base/compiler.h"
#include "interpose/arena/arena.h"
#include "interpose/context/contexts.h"

/* Which blocks an allocation may take. */
enum bfc_reuse_how {
    BFC_REUSE_ANY,
    BFC_REUSE_READY, /* no pending block may be taken, since a stream capture is under way */
    BFC_REUSE_THERE, /* only free blocks may be taken: the pool neither grows nor waits */
};

/* How an allocation ended. */
struct bfc_outcome {
    CUdeviceptr pointer;    /* the block's address; set where the allocation returns CUDA_SUCCESS */
    enum bfc_status status; /* the pool's status; also BFC_OK if the failure was not the pool's */
    /* unless `status` is BFC_OK: what the driver answered last when the pool asked for memory;
     * CUDA_SUCCESS: the driver was not asked */
    CUresult error;
};

/* Hands out a block of the arena's pool. Returns CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY where the
 * pool's status is not BFC_OK, or the driver's error. The pool does not count a failure as out of
 * memory, since the caller may still find memory in other ways. */
CUresult bfc_reuse_allocate(const struct bfc_driver *driver, struct bfc_arena *arena, size_t bytes,
                            enum bfc_reuse_how how, struct bfc_outcome *outcome);

/* Repeats an allocation that bfc_reuse_allocate could not serve. With `is_first` the pool may grow
 * even if other jobs wait for memory. */
CUresult bfc_reuse_allocate_again(const struct bfc_driver *driver, struct bfc_arena *arena,
                                  size_t bytes, enum bfc_reuse_how how, bool is_first,
                                  struct bfc_outcome *outcome);

/* Waits on the host for the fences of blocks that were handed out before those fences were
 * complete. On the device only work of the block's own context waits for such a fence. So this call
 * must come before another context, device or process can use the block; on an error, none of them
 * may. */
CUresult bfc_reuse_wait_for_handed_out(const struct bfc_driver *driver, struct bfc_arena *arena);

/* Whether there is a context that no hook has seen, or that cannot be ruled out. If such a context
 * is found, it is recorded. */
bool bfc_reuse_has_company(const struct bfc_driver *driver);

/* Records a context that may be new. Before it can do work, the host waits for the fences of blocks
 * that mode ordered has handed out (bfc_reuse_wait_for_handed_out). */
void bfc_reuse_context_found(const struct bfc_driver *driver, CUcontext context);
static inline void bfc_reuse_context_made(const struct bfc_driver *driver, CUcontext context) {
    if (UNLIKELY(!bfc_contexts_has(driver, context)))
        bfc_reuse_context_found(driver, context);
}

#endif
