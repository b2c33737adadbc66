/* Hands out blocks, in mode ordered also pending ones, and waits for the fences of such blocks. */
#include "interpose/reuse/allocate.h"

#include "base/atomic.h"
#include "interpose/config/process.h"
#include "interpose/reuse/free_fence.h"
#include "interpose/table/counter.h"

static NOINLINE void log_fallen_back(const struct bfc_arena *arena, const char *why) {
    static unsigned seen;
    bfc_log_repeated(BFC_LOG_DEBUG, &seen,
                     "device %d, context %llu: pending memory is not reused now: %s",
                     (int)arena->device, arena->id, why);
}

/* Clears lazy_until, the fence before which no pending block is handed out, if it is complete. */
static NOINLINE void look_at_lazy(const struct bfc_driver *driver, struct bfc_arena *arena,
                                  bfc_fence until) {
    /* If another thread has set lazy_until to a later fence meanwhile, that one stays, and the next
     * allocation asks again. */
    if (bfc_fences_poll(arena->fences, driver) >= until)
        bfc_compare_exchange_seq_cst(&arena->lazy_until, &until, BFC_NO_FENCE);
    else
        log_fallen_back(arena, "a fence over peers' work, or later than its free, is not complete");
}

/* Whether pending blocks may be handed out at once, with later work ordered behind their fences on
 * the device. They may not while there are several contexts, as there always are with peer access,
 * nor while the fence lazy_until is not complete. */
static inline bool may_reorder(struct bfc_arena *arena) {
    return !bfc_contexts_are_several() && bfc_load_seq_cst(&arena->lazy_until) == BFC_NO_FENCE;
}

NOINLINE bool bfc_reuse_has_company(const struct bfc_driver *driver) {
    bool unknown;
    CUcontext found = bfc_contexts_search(driver, &unknown);
    if (found)
        bfc_reuse_context_found(driver, found);
    return unknown || found;
}

static inline bool wants_pending(const struct bfc_driver *driver, struct bfc_arena *arena) {
    if (arena->free_mode != BFC_FREE_ORDERED)
        return false;
    bfc_fence until = bfc_load_seq_cst(&arena->lazy_until);
    if (UNLIKELY(until != BFC_NO_FENCE))
        look_at_lazy(driver, arena, until);
    return may_reorder(arena);
}

/*
 * Makes the context's later work wait on the device for the fence of a pending block. False without
 * an error: the block went back to the pool, and no pending block may be handed out now.
 *
 * A fence for which only the host may wait, such as one over peers' work, must not be announced
 * (bfc_fences_announce), so may_reorder is checked before. It is checked again afterwards: a thread
 * that makes another context counts the context, and then waits for announced fences. So either
 * that thread sees this fence, or this thread sees that context.
 */
static inline bool keep_pending(const struct bfc_driver *driver, struct bfc_arena *arena,
                                const struct bfc_block_info *block, CUresult *result) {
    struct bfc_order order;
    CUstreamCaptureMode mode = bfc_capture_relax(driver);
    bool kept = may_reorder(arena) && !(bfc_contexts_hide() && bfc_reuse_has_company(driver)) &&
                bfc_fences_announce(arena->fences, block->fence, &order);
    if (kept && !may_reorder(arena)) {
        bfc_fences_retract(arena->fences, &order);
        kept = false;
    }
    if (kept)
        *result = bfc_fences_order(arena->fences, driver, arena->context, &order);
    bfc_capture_restore(driver, mode);
    if (LIKELY(kept && *result == CUDA_SUCCESS)) {
        if (order.events)
            bfc_events_count_device_wait(&arena->stats);
        return true;
    }
    bfc_reuse_latch(arena, *result);
    log_fallen_back(arena, *result == CUDA_SUCCESS ? "the device cannot order this block, or there "
                                                     "may be another context"
                                                   : "the driver refused a wait on the device");
    bfc_pool_free(arena->pool, block->start, block->fence);
    if (bfc_reuse_is_passing(*result))
        *result = CUDA_SUCCESS;
    return false;
}

/* Hands out a block. `placer`, if not NULL, follows a plan (BFC_PLAN) and is asked first. If its
 * block is pending and may not be used now, the pool is asked for one that is not pending. */
static ALWAYS_INLINE CUresult allocate_flagged(const struct bfc_driver *driver,
                                               struct bfc_arena *arena, size_t bytes,
                                               enum bfc_reuse_how how, unsigned flags,
                                               const struct bfc_placer *placer,
                                               struct bfc_outcome *outcome) {
    struct bfc_block_info block;
    CUresult result = (CUresult)bfc_load_relaxed(&arena->fatal);
    outcome->status = BFC_OK;
    if (result != CUDA_SUCCESS)
        return result;
    /* cleared, because a placer (arena/state.h) that refuses without asking the pool does not set
     * it */
    block.error = 0;
    unsigned base = flags | (how == BFC_REUSE_THERE ? BFC_ALLOCATE_HIT_ONLY : 0);
    unsigned pending =
        how != BFC_REUSE_READY && wants_pending(driver, arena) ? BFC_ALLOCATE_PENDING : 0;
    for (;;) {
        outcome->status = placer ? placer->allocate(arena, bytes, base | pending, &block)
                                 : bfc_pool_allocate(arena->pool, bytes, base | pending, &block);
        if (outcome->status != BFC_OK) {
            outcome->error = (CUresult)block.error;
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        if (block.fence == BFC_NO_FENCE || keep_pending(driver, arena, &block, &result))
            break;
        if (result != CUDA_SUCCESS)
            return result;
        pending = 0;
        placer = NULL;
    }
    outcome->pointer = block.start;
    return CUDA_SUCCESS;
}

static NOINLINE CUresult allocate_placed(const struct bfc_driver *driver, struct bfc_arena *arena,
                                         size_t bytes, enum bfc_reuse_how how,
                                         struct bfc_outcome *outcome) {
    return allocate_flagged(driver, arena, bytes, how, BFC_ALLOCATE_UNCOUNTED,
                            bfc_load_acquire(&arena->placer), outcome);
}

CUresult bfc_reuse_allocate(const struct bfc_driver *driver, struct bfc_arena *arena, size_t bytes,
                            enum bfc_reuse_how how, struct bfc_outcome *outcome) {
    if (UNLIKELY(bfc_load_relaxed(&arena->placer) != NULL))
        return allocate_placed(driver, arena, bytes, how, outcome);
    return allocate_flagged(driver, arena, bytes, how, BFC_ALLOCATE_UNCOUNTED, NULL, outcome);
}

CUresult bfc_reuse_allocate_again(const struct bfc_driver *driver, struct bfc_arena *arena,
                                  size_t bytes, enum bfc_reuse_how how, bool is_first,
                                  struct bfc_outcome *outcome) {
    unsigned flags =
        BFC_ALLOCATE_UNCOUNTED | BFC_ALLOCATE_AGAIN | (is_first ? BFC_ALLOCATE_FIRST : 0);
    return allocate_flagged(driver, arena, bytes, how, flags, NULL, outcome);
}

CUresult bfc_reuse_wait_for_handed_out(const struct bfc_driver *driver, struct bfc_arena *arena) {
    CUresult result = CUDA_SUCCESS;
    bfc_fence announced = arena->fences ? bfc_fences_announced(arena->fences) : BFC_NO_FENCE;
    if (announced != BFC_NO_FENCE)
        bfc_fences_wait(arena->fences, driver, announced, UINT64_MAX, &result);
    if (bfc_reuse_is_of_peer(driver, arena, result))
        bfc_fences_wait(arena->fences, driver, announced, UINT64_MAX, &result);
    return bfc_reuse_latch(arena, result);
}

static void log_several(void) {
    static unsigned seen;
    const struct bfc_process *process = bfc_process_if_made();
    if (process && process->serves && process->options.free_mode == BFC_FREE_ORDERED &&
        bfc_contexts_are_several())
        bfc_log_repeated(BFC_LOG_INFO, &seen,
                         "another context began: while there are several BFC_FREE=ordered acts as "
                         "lazy");
}

/* The new context is counted before this thread waits for the fences of blocks that were handed
 * out. With several contexts mode ordered hands out no more pending blocks, so none is missed. */
void bfc_reuse_context_found(const struct bfc_driver *driver, CUcontext context) {
    struct bfc_arena *arena = NULL;
    bfc_contexts_review(driver);
    bfc_contexts_add(context);
    if (bfc_contexts_are_several())
        BFC_TELL_COUNTER(leave());
    while (bfc_process_if_made() && (arena = bfc_arena_next(arena)))
        if (arena->context != context)
            bfc_reuse_wait_for_handed_out(driver, arena);
    bfc_contexts_settle(context);
    log_several();
}
