#include "pool/regions/regions.h"

#include "base/numbers.h"
#include "pool/blocks/surgery.h"
#include "pool/search/runs.h"
#include "pool/search/take.h"

#define AWAITED_SLICE_NS ((uint64_t)10 * 1000 * 1000)

void wait_poll(struct bfc_pool *pool) {
    /* If no block is pending, but some are deferred or awaited, the upstream is asked all the same:
     * while it answers, it may give deferred blocks a fence, and make awaited blocks ready. */
    if (!pool->pending_list.oldest && !pool->deferred_list.oldest && !pool->awaited)
        return;
    pool_leave(pool);
    bfc_fence fence =
        pool->upstream.poll ? pool->upstream.poll(pool->upstream.context) : UINT64_MAX;
    pool_enter(pool);
    settle_note_complete(pool, fence);
}

uint64_t wait_clock(const struct bfc_pool *pool) {
    return pool->upstream.now ? pool->upstream.now(pool->upstream.context) : 0;
}

uint64_t wait_until_complete(struct bfc_pool *pool, bfc_fence fence, uint64_t timeout_ns) {
    pool_leave(pool);
    uint64_t began = wait_clock(pool);
    bfc_fence complete = pool->upstream.wait(pool->upstream.context, fence, timeout_ns);
    uint64_t spent = wait_clock(pool) - began;
    pool_enter(pool);
    pool->stats->waits++;
    pool->stats->wait_ns += spent;
    settle_note_complete(pool, complete);
    return complete >= fence ? spent : UINT64_MAX;
}

/* Waits in periods of AWAITED_SLICE_NS: another thread may make a block ready meanwhile, and the
 * loop notices that only after a period. */
void wait_for_awaited_block(struct bfc_pool *pool, uint64_t timeout_ns) {
    uint64_t readied = pool->readied, began = wait_clock(pool);
    for (uint64_t waited = 0;
         pool->upstream.wait && pool->awaited && pool->readied == readied && waited <= timeout_ns;
         waited += AWAITED_SLICE_NS) {
        uint64_t slice = bfc_min(timeout_ns - waited, AWAITED_SLICE_NS);
        pool_leave(pool);
        bfc_fence complete = pool->upstream.wait(pool->upstream.context, BFC_NO_FENCE, slice);
        pool_enter(pool);
        settle_note_complete(pool, complete);
    }
    pool->stats->waits += timeout_ns != 0;
    pool->stats->wait_ns += timeout_ns ? wait_clock(pool) - began : 0;
}

bool wait_and_take(struct bfc_pool *pool, const struct request *request, uint64_t timeout_ns) {
    bfc_fence fence;
    uint64_t spent = 0;
    while (pool->upstream.wait && spent < timeout_ns &&
           runs_find(pool, request->granules, false, &fence)) {
        uint64_t rest = timeout_ns == UINT64_MAX ? timeout_ns : timeout_ns - spent;
        uint64_t took = wait_until_complete(pool, fence, rest);
        if (take_any(pool, request))
            return true;
        if (took == UINT64_MAX)
            return false;
        spent += took;
    }
    return false;
}
