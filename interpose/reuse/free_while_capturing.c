/* Defers frees while a stream captures, and later makes the deferred blocks pending or ready. */
#include "interpose/reuse/free_while_capturing.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "interpose/arena/arena.h"
#include "interpose/arena/upstream.h"
#include "interpose/config/options.h"
#include "interpose/reuse/free_fence.h"

static CUresult defer_block(struct bfc_arena *arena, CUdeviceptr pointer) {
    if (bfc_pool_free(arena->pool, pointer, BFC_DEFERRED_FENCE) != BFC_OK)
        return CUDA_ERROR_INVALID_VALUE;
    bfc_store_seq_cst(&arena->has_deferred, true);
    return CUDA_SUCCESS;
}

void bfc_reuse_fence_deferred(const struct bfc_driver *driver, struct bfc_arena *arena) {
    CUcontext contexts[BFC_FENCE_CONTEXTS];
    bfc_fence fence;
    if (!bfc_load_seq_cst(&arena->has_deferred) || !arena->fences || !bfc_gate_enter())
        return;
    bfc_fetch_add_seq_cst(&arena->fencers, 1);
    bfc_store_seq_cst(&arena->has_deferred, false);
    size_t count = bfc_reuse_contexts_of(arena, true, contexts);
    uint64_t arrivals = bfc_pool_deferred_arrivals(arena->pool);
    if (bfc_reuse_record(driver, arena, contexts, count, true, &fence) == CUDA_SUCCESS)
        bfc_pool_fence_deferred(arena->pool, fence, arrivals);
    else
        bfc_store_seq_cst(&arena->has_deferred, true);
    bfc_fetch_sub_seq_cst(&arena->fencers, 1);
    bfc_gate_leave();
}

/* Waits as the driver's own free does, and makes deferred blocks ready. That wait does not cover
 * the work of peers. So with peers no block becomes ready, but whole regions go back to the driver.
 * The caller must be a thread that no capture bars from freeing. */
static CUresult clear_deferred(const struct bfc_driver *driver, struct bfc_arena *arena) {
    uint64_t arrivals = bfc_pool_deferred_arrivals(arena->pool);
    if (bfc_reuse_has_peers(arena)) {
        if (!bfc_arena_is_host(arena)) /* a free of host memory need not wait */
            bfc_pool_trim_used(arena->pool, UINT64_MAX);
        return CUDA_SUCCESS;
    }
    CUresult result = bfc_reuse_latch(arena, bfc_upstream_wait_as_free(driver, arena));
    if (result == CUDA_SUCCESS)
        bfc_pool_fence_deferred(arena->pool, BFC_NO_FENCE, arrivals);
    return result;
}

/* Waits for all work of a peer. False: the wait failed, or it was not possible, because the peer
 * has no arena or is about to end. */
static bool wait_for_peer(const struct bfc_driver *driver, CUcontext peer) {
    struct bfc_arena *arena = bfc_arena_of_context(peer, 0);
    bool waited = arena && bfc_arena_enter(arena);
    if (waited) {
        waited = bfc_upstream_wait_as_free(driver, arena) == CUDA_SUCCESS;
        bfc_arena_leave(arena);
    }
    bfc_arena_drop(arena);
    return waited;
}

static bool wait_for_users(const struct bfc_driver *driver, struct bfc_arena *arena) {
    CUcontext peers[BFC_FENCE_CONTEXTS];
    size_t count = bfc_reuse_contexts_of(arena, false, peers), waited = 0;
    if (bfc_reuse_latch(arena, bfc_upstream_wait_as_free(driver, arena)) != CUDA_SUCCESS)
        return false;
    while (waited < count && wait_for_peer(driver, peers[waited]))
        waited++;
    return waited == count;
}

/* Once the wait has ended, all fences that had a number before it are complete, because the work
 * that they must cover was submitted before the wait. */
void bfc_reuse_make_all_ready(const struct bfc_driver *driver, struct bfc_arena *arena) {
    bfc_fence drawn = arena->fences ? bfc_fences_last(arena->fences) : BFC_NO_FENCE;
    uint64_t arrivals = bfc_pool_deferred_arrivals(arena->pool);
    if (!wait_for_users(driver, arena))
        return;
    bfc_pool_fence_deferred(arena->pool, BFC_NO_FENCE, arrivals);
    bfc_pool_complete(arena->pool, drawn);
}

void bfc_reuse_settle_deferred(const struct bfc_driver *driver, struct bfc_arena *arena) {
    bfc_reuse_fence_deferred(driver, arena);
    /* A thread that gives deferred blocks a fence clears has_deferred before the blocks become
     * pending. So this thread first waits, a second at most, until no thread is doing that. */
    bfc_await_zero(&arena->fencers, BFC_NS_PER_SECOND);
    if (!bfc_load_seq_cst(&arena->has_deferred) || bfc_capture_state(driver) == BFC_CAPTURE_BARRED)
        return;
    /* Unmapping pages, unlike freeing a region, does not wait; so this thread waits for peers. */
    if (arena->has_pages && bfc_reuse_has_peers(arena))
        bfc_reuse_make_all_ready(driver, arena);
    else
        clear_deferred(driver, arena);
}

/* Frees a block after a wait like that of the driver's own free, or if the device has no memory for
 * that, after one that the driver's documentation does not promise. If the wait fails, the block
 * stays the program's. The block is deferred where the wait may not cover all its uses: after that
 * second kind of wait, and if peers may still use it. */
static CUresult free_as_driver(const struct bfc_driver *driver, struct bfc_arena *arena,
                               CUdeviceptr pointer) {
    if (!bfc_pool_is_live(arena->pool, pointer)) {
        bfc_pool_count_invalid_free(arena->pool, pointer);
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = bfc_reuse_latch(arena, bfc_upstream_wait_as_free(driver, arena));
    bool waited = result == CUDA_SUCCESS;
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        result = bfc_reuse_latch(arena, bfc_upstream_wait_weakly(driver, arena));
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY)
        return result;
    return waited && !bfc_reuse_has_peers(arena) ? bfc_reuse_take_back(arena, pointer, BFC_NO_FENCE)
                                                 : defer_block(arena, pointer);
}

/* Defers the block. Waits only if more than BFC_PENDING_BUDGET bytes are deferred then. */
static CUresult free_deferring(const struct bfc_driver *driver, struct bfc_arena *arena,
                               CUdeviceptr pointer) {
    CUresult result = defer_block(arena, pointer);
    if (bfc_load_relaxed(&arena->stats.section->stats.deferred) > arena->pending_budget)
        clear_deferred(driver, arena);
    return result;
}

CUresult bfc_reuse_free_unfenced(const struct bfc_driver *driver, struct bfc_arena *arena,
                                 CUdeviceptr pointer) {
    return arena->free_mode == BFC_FREE_SYNC ? free_as_driver(driver, arena, pointer)
                                             : free_deferring(driver, arena, pointer);
}

/* Finds out whether a capture forbids this thread to free, by an allocation, which it would forbid
 * too. Returns the error if so, else CUDA_SUCCESS. The answer that there is no memory shows that
 * the call is allowed, but only if the driver gives it several times in a row. */
static CUresult ask_whether_barred(const struct bfc_driver *driver) {
    enum { TRIES = 3 };
    CUdeviceptr probe;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    for (int i = 0; i < TRIES && result == CUDA_ERROR_OUT_OF_MEMORY; i++)
        result = driver->cuMemAlloc_v2(&probe, 1);
    if (result == CUDA_SUCCESS)
        driver->cuMemFree_v2(probe);
    return result == CUDA_ERROR_OUT_OF_MEMORY ? CUDA_SUCCESS : result;
}

CUresult bfc_reuse_free_while_capturing(const struct bfc_driver *driver, struct bfc_arena *arena,
                                        CUdeviceptr pointer, enum bfc_capture_state state) {
    if (state == BFC_CAPTURE_BARRED) {
        CUresult result = ask_whether_barred(driver);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return bfc_reuse_free_unfenced(driver, arena, pointer);
}

void bfc_reuse_after_captures(const struct bfc_driver *driver) {
    struct bfc_arena *arena = NULL;
    while ((arena = bfc_arena_next(arena)))
        bfc_reuse_fence_deferred(driver, arena);
}
