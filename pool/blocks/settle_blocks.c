
#include "base/numbers.h"
#include "pool/blocks/slots.h"
#include "pool/blocks/surgery.h"

void settle_completed(struct bfc_pool *pool, uint64_t most) {
    while (pool->oldest_fence <= pool->completed && most--)
        surgery_make_ready(pool, pool->pending_list.oldest);
}

void settle_note_complete(struct bfc_pool *pool, bfc_fence fence) {
    if (fence == BFC_DEFERRED_FENCE)
        /* BFC_DEFERRED_FENCE, the highest number, is no fence, but the mark of blocks that have
         * none yet. So it must not count as complete. All fences are lower, and do. */
        fence--;
    pool->completed = bfc_max(pool->completed, fence);
}

void bfc_pool_complete(struct bfc_pool *pool, bfc_fence fence) {
    pool_enter(pool);
    settle_note_complete(pool, fence);
    settle_completed(pool, FENCES_A_CALL);
    slots_settle(pool);
    pool_leave(pool);
}

uint64_t bfc_pool_deferred_arrivals(struct bfc_pool *pool) {
    pool_enter(pool);
    uint64_t arrivals = pool->deferred_arrivals;
    pool_leave(pool);
    return arrivals;
}

void bfc_pool_fence_deferred(struct bfc_pool *pool, bfc_fence fence, uint64_t arrivals) {
    if (fence == BFC_DEFERRED_FENCE)
        return;
    const struct block_detail *details = pool->details;
    pool_enter(pool);
    block_index b = pool->deferred_list.newest;
    while (b && details[b].arrivals > arrivals)
        b = details[b].older;
    while (b) {
        block_index before = details[b].older;
        surgery_unlist(pool, b);
        pool_count_deferred(pool, -block_size(&pool->blocks[b]));
        surgery_make_free(pool, b, fence);
        b = before;
    }
    slots_settle(pool);
    pool_leave(pool);
}
