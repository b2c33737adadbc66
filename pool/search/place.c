#include "pool/search/place.h"

#include "base/numbers.h"
#include "pool/blocks/region.h"
#include "pool/blocks/slots.h"
#include "pool/search/take.h"

/* Returns the start of the nearest live block before b in b's region; 0: none of the PLACE_STEPS
 * blocks before b is live. */
static bfc_addr live_before(const struct bfc_pool *pool, block_index b) {
    const struct block *blocks = pool->blocks;
    for (int i = 0; i < PLACE_STEPS; i++) {
        b = blocks[b].previous;
        if (block_state(&blocks[b]) == BLOCK_LIVE)
            return block_start(&blocks[b]);
        if (block_state(&blocks[b]) == BLOCK_HEAD)
            break;
    }
    return 0;
}

/* Returns PLACE_TAKEN if the request may take block b or a part of b; otherwise the value of enum
 * place_state that says why it may not. */
static enum place_state state_for(const struct bfc_pool *pool, block_index b,
                                  const struct request *request) {
    enum block_state state = block_state(&pool->blocks[b]);
    if (state == BLOCK_READY)
        return PLACE_TAKEN;
    if (state != BLOCK_PENDING)
        return PLACE_BUSY;
    bool complete = pool->details[b].fence <= pool->completed;
    bool reuses = (request->flags & BFC_ALLOCATE_PENDING) && pool->config.reuse_pending;
    return complete || (reuses && !is_shared(pool, b)) ? PLACE_TAKEN : PLACE_PENDING;
}

/* Checks whether the request may take all blocks from b up to the address `end`. Returns
 * PLACE_TAKEN if so, PLACE_OUTSIDE if the region ends before `end`, otherwise the result for the
 * first block that the request may not take. */
static enum place_state state_until(const struct bfc_pool *pool, block_index b, bfc_addr end,
                                    const struct request *request) {
    for (;; b = pool->blocks[b].next) {
        if (!b)
            return PLACE_OUTSIDE;
        enum place_state state = state_for(pool, b, request);
        if (state != PLACE_TAKEN || block_end(&pool->blocks[b]) >= end)
            return state;
    }
}

/* Cuts the first granules, `most` at most, off free block b, and returns them as a block that is in
 * no bin and no list and is not counted as free. If b is pending, raises `*fence` to the fence of
 * b. */
static block_index take_front(struct bfc_pool *pool, block_index b, uint64_t most,
                              bfc_fence *fence) {
    bool pending = block_state(&pool->blocks[b]) == BLOCK_PENDING;
    uint64_t granules = bfc_min(block_granules(&pool->blocks[b]), most);
    if (pending)
        *fence = bfc_max(*fence, pool->details[b].fence);
    *(pending ? &pool->stats->pending : &pool->stats->ready) -= granules << BFC_GRANULE_BITS;
    return surgery_take_front(pool, b, granules);
}

/* Makes the request's range live; the range starts at the address `at` in block b. The caller has
 * checked that all of the range is free, and has reserved two block records with slots_prepare. */
static void take_from(struct bfc_pool *pool, block_index b, bfc_addr at,
                      const struct request *request) {
    bfc_fence fence = BFC_NO_FENCE;
    if (block_is_whole(&pool->blocks[b]))
        whole_open(pool, b);
    uint64_t lead = at - block_start(&pool->blocks[b]);
    if (lead)
        surgery_cut_front(pool, bins_of(pool, b), b, lead >> BFC_GRANULE_BITS);
    block_index taken = take_front(pool, b, request->granules, &fence);
    while (block_granules(&pool->blocks[taken]) < request->granules) {
        uint64_t rest = request->granules - block_granules(&pool->blocks[taken]);
        take_front(pool, pool->blocks[taken].next, rest, &fence);
        absorb_next(pool, taken, true);
    }
    bool complete = fence <= pool->completed;
    pool->stats->pending_reuses += !complete;
    make_live(pool, taken, request, complete ? BFC_NO_FENCE : fence);
}

block_index place_find(const struct bfc_pool *pool, bfc_addr at, bfc_addr below[BFC_PLACE_HINTS]) {
    bfc_addr failed = below[0];
    block_index b = place_find_from(pool, at, below[1]);
    below[0] = below[1];
    if (!b) {
        b = find_holding(pool, at);
        below[0] = b ? live_before(pool, b) : 0;
    }
    below[1] = failed;
    return b;
}

/* Returns the smallest block of the treap `root`, of any zone, with room for `granules`, counted
 * from the first address in it at which a block of that size may start; 0: there is none. */
static block_index smallest_in(const struct bfc_pool *pool, block_index root, uint64_t granules) {
    block_index best = 0;
    for (int zone = 0; zone < ZONE_COUNT; zone++) {
        block_index b = sorted_find(root, pool->blocks, (enum block_zone)zone, granules);
        while (b && !block_has_room(pool, b, granules))
            b = sorted_next(root, pool->blocks, b);
        if (b && (!best || pool->blocks[b].last < pool->blocks[best].last))
            best = b;
    }
    return best;
}

bool place_take_in(struct bfc_pool *pool, block_index b, const struct request *request) {
    uint64_t lead = block_lead(pool, b, request->granules);
    bfc_addr at = block_start(&pool->blocks[b]) + (lead << BFC_GRANULE_BITS);
    return lead < block_granules(&pool->blocks[b]) &&
           place_take_any(pool, b, at, request) == PLACE_TAKEN;
}

bool place_take_smallest(struct bfc_pool *pool, const struct request *request) {
    block_index b = smallest_in(pool, pool->ready.root, request->granules);
    b = b ? b : smallest_in(pool, pool->whole.root, request->granules);
    return b && place_take_in(pool, b, request);
}

enum place_state place_take_any(struct bfc_pool *pool, block_index b, bfc_addr at,
                                const struct request *request) {
    if (!b || at > UINT64_MAX - request_size(request))
        return PLACE_OUTSIDE;
    if (!place_may_start(pool, b, at, request->granules))
        return PLACE_MISALIGNED;
    if (!slots_prepare(pool, 2))
        return PLACE_NO_HOST_MEMORY;
    enum place_state state = state_until(pool, b, at + request_size(request), request);
    if (state == PLACE_TAKEN)
        take_from(pool, b, at, request);
    return state;
}
