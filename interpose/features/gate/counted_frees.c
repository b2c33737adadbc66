/* Frees in modes lazy and ordered that need no fence, or share a fence with earlier frees, because
 * submissions of work are counted. */
#include "interpose/features/gate/counted_frees.h"

#include "base/atomic.h"
#include "interpose/arena/arena.h"
#include "interpose/config/option_table.h"
#include "interpose/context/contexts.h"
#include "interpose/features/gate/check_streams.h"
#include "interpose/features/gate/only_stream.h"
#include "interpose/features/gate/submissions.h"
#include "interpose/reuse/allocate.h"
#include "interpose/reuse/free_fence.h"
#include "interpose/reuse/free_modes.h"

/* Whether a freed block may be handed out at once, without a fence, because all work goes to one
 * stream: work of the block's next owner then runs after work of its last owner. Returns what
 * bfc_only_stream_orders returns, which is 0 if a fence is needed. An arena of pages always needs
 * fences: its free pages may be unmapped, and unmapping does not wait for work. */
static uint64_t orders_by_stream(const struct bfc_driver *driver, const struct bfc_arena *arena) {
    bool may = bfc_only_stream_may_be() && !arena->has_pages && !bfc_arena_is_host(arena) &&
               !bfc_load_relaxed(&arena->fatal) && !bfc_contexts_are_several() &&
               !(bfc_contexts_hide() && bfc_reuse_has_company(driver));
    return may ? bfc_only_stream_orders() : 0;
}

/* The last fence that the calling thread has recorded. As long as bfc_submissions_count gives
 * `submissions`, no thread has submitted work since, and the fence covers all work. */
static __thread struct {
    uint64_t arena; /* `sequence` of the fence's arena; 0: the thread has recorded no fence yet */
    uint64_t submissions;
    bfc_fence fence;
} last_fence INITIAL_EXEC;

/* Now and then begins a trial (only_stream.h), an attempt to return to the state of one stream. The
 * trial succeeds when a fence that is recorded after it began is complete. The fence of the free
 * would not do, since work may have been submitted between that fence and the trial. */
static void try_streams(const struct bfc_driver *driver, struct bfc_arena *arena) {
    bfc_fence proof;
    uint64_t trial = bfc_only_stream_try();
    if (trial && bfc_reuse_record(driver, arena, &arena->context, 1, false, &proof) == CUDA_SUCCESS)
        bfc_only_stream_await(trial, arena->sequence, proof);
}

/* Frees a block under a fence: the thread's last one if nothing was submitted since, else a new
 * one. */
static NOINLINE CUresult free_fenced(const struct bfc_driver *driver, struct bfc_arena *arena,
                                     CUdeviceptr pointer) {
    uint64_t submissions;
    if (arena->free_mode == BFC_FREE_ORDERED)
        bfc_store_relaxed(&arena->plain_most, 0);
    bool known = bfc_submissions_count(&submissions);
    if (known && last_fence.arena == arena->sequence && last_fence.submissions == submissions)
        return bfc_reuse_take_back(arena, pointer, last_fence.fence);
    bfc_fence fence;
    CUresult result = bfc_reuse_free_fenced(driver, arena, pointer, &fence);
    if (fence == BFC_NO_FENCE)
        return result;
    if (known) {
        last_fence.arena = arena->sequence;
        last_fence.submissions = submissions;
        last_fence.fence = fence;
    }
    try_streams(driver, arena);
    return result;
}

CUresult bfc_free_counted(const struct bfc_driver *driver, struct bfc_arena *arena,
                          CUdeviceptr pointer) {
    /* Regions go back only if there is one stream for long: once there are several, blocks stay
     * pending for a while after each free, and the pool needs the regions again. */
    if (UNLIKELY(bfc_pool_has_surplus(arena->pool)) && bfc_only_stream_lasts() &&
        !bfc_capture_was_seen())
        bfc_reuse_give_back_surplus(driver, arena, pointer);
    uint64_t number = orders_by_stream(driver, arena);
    if (UNLIKELY(!number))
        return free_fenced(driver, arena, pointer);
    if (UNLIKELY(number % BFC_CHECK_LOOK == 0))
        bfc_check_streams(driver, arena, number);
    if (UNLIKELY(!bfc_arena_plain_most(arena)))
        bfc_arena_let_plain(arena);
    return bfc_reuse_take_back(arena, pointer, BFC_NO_FENCE);
}
