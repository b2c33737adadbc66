/* Frees without a fence, and frees that share one. */
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

/* Whether all work goes to one stream, so that the next owner's runs after the last owner's on the
 * device without a fence: as bfc_only_stream_orders. */
static uint64_t orders_by_stream(const struct bfc_driver *driver, const struct bfc_arena *arena) {
    bool may = bfc_only_stream_may_be() && !bfc_load_relaxed(&arena->settlers) &&
               !bfc_arena_is_host(arena) && !bfc_load_relaxed(&arena->fatal) &&
               !bfc_contexts_are_several() &&
               !(bfc_contexts_hide() && bfc_reuse_has_company(driver));
    return may ? bfc_only_stream_orders() : 0;
}

/* The last fence of the calling thread. Until something is submitted, it covers all work. */
static __thread struct {
    uint64_t arena; /* the arena's sequence */
    uint64_t submissions;
    bfc_fence fence;
} last_fence INITIAL_EXEC;

/* Begins a trial, if one is due. Its proof is a fence that is recorded here: the next free's fence
 * could not be named before it is recorded, since the driver may refuse to record it, and a fence
 * that was refused counts as complete although no work was waited for. */
static void try_streams(const struct bfc_driver *driver, struct bfc_arena *arena) {
    bfc_fence proof;
    uint64_t trial = bfc_only_stream_try();
    if (trial && bfc_reuse_record(driver, arena, &arena->context, 1, false, &proof) == CUDA_SUCCESS)
        bfc_only_stream_await(trial, arena->sequence, proof);
}

CUresult bfc_free_counted(const struct bfc_driver *driver, struct bfc_arena *arena,
                          CUdeviceptr pointer) {
    uint64_t submissions, number = orders_by_stream(driver, arena);
    if (LIKELY(number)) {
        if (UNLIKELY(number % BFC_CHECK_LOOK == 0))
            bfc_check_streams(driver, arena, number);
        if (UNLIKELY(!bfc_arena_plain_most(arena)))
            bfc_arena_let_plain(arena);
        /* Unmapping a page does not wait for work, so the pool must know that there may be some. */
        return bfc_reuse_take_back(arena, pointer,
                                   arena->has_pages ? BFC_STREAM_FENCE : BFC_NO_FENCE);
    }
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
