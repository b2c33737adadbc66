#include "pool/search/take.h"

#include "base/atomic.h"
#include "base/compiler.h"
#include "pool/blocks/surgery.h"
#include "pool/policy/growth.h"
#include "pool/search/runs.h"

/* A pending block is handed out in place of a ready one only if the pending one's bin is more than
 * this many bins below the ready one's; there are 32 bins for each doubling of size. */
#define PENDING_ADVANTAGE 4

void take_more_ids(struct bfc_pool *pool) {
    static uint64_t given;
    const uint64_t batch = 1 << 16;
    /* No memory order is needed, because ids need only be unique. */
    pool->next_id = bfc_fetch_add_relaxed(&given, batch) + 1;
    pool->last_id = pool->next_id + batch - 1;
}

/* If a block of the request's size may not start where b starts, cuts off b's first granules up to
 * the first address where it may; they become a free block. False: the host has no memory for a
 * block record. */
static inline bool cut_lead(struct bfc_pool *pool, struct bins *bins, block_index b,
                            const struct request *request) {
    if (LIKELY(starts_well(&pool->blocks[b], request->granules)))
        return true;
    uint64_t granules = block_lead(pool, b, request->granules);
    return !granules || surgery_cut_front(pool, bins, b, granules);
}

static void hand_out_pending(struct bfc_pool *pool, block_index b, const struct request *request) {
    bfc_fence fence = pool->details[b].fence;
    block_index taken = take_off(pool, &pool->pending, b, request, false);
    if (taken == b)
        surgery_unfence(pool, b);
    pool->stats->pending -= block_size(&pool->blocks[taken]);
    bool complete = fence <= pool->completed;
    pool->stats->pending_reuses += !complete;
    make_live(pool, taken, request, complete ? BFC_NO_FENCE : fence);
}

/* Hands out pending block b or a part of it, from the first address where a block of the request's
 * size may start. False: the host has no memory for a block record. */
static bool take_pending(struct bfc_pool *pool, block_index b, const struct request *request) {
    if (!cut_lead(pool, &pool->pending, b, request))
        return false;
    hand_out_pending(pool, b, request);
    return true;
}

/* Returns the bins of ready blocks in which a request of this size is searched for first: those of
 * the regions for small blocks if the policy has such regions and the request is small, otherwise
 * those of the other regions. */
static struct bins *ready_for(struct bfc_pool *pool, uint64_t granules) {
    return granules << BFC_GRANULE_BITS <= pool->rules.small_most ? &pool->small : &pool->ready;
}

/* Returns the smallest block that has room for `granules`, from bins that are sorted. 0: there is
 * none, or the policy does not let this request take it. */
static block_index pick_exactly(const struct bfc_pool *pool, const struct bins *bins,
                                uint64_t granules) {
    uint64_t size = granules << BFC_GRANULE_BITS;
    block_index b = sorted_find(bins->root, pool->blocks, policy_zone(pool, size), granules);
    while (b && !block_has_room(pool, b, granules))
        b = sorted_next(bins->root, pool->blocks, b);
    return b && policy_fits(pool, size, block_size(&pool->blocks[b])) ? b : 0;
}

/* Returns b if b is 0 or has room for `granules` at an address where such a block may start.
 * Otherwise returns a block of these bins so large that it has room wherever it starts; 0: there is
 * none. */
static block_index with_room(const struct bfc_pool *pool, const struct bins *bins, block_index b,
                             uint64_t granules) {
    return !b || block_has_room(pool, b, granules)
               ? b
               : bins_pick(bins, pool->blocks, granules + MOST_LEAD);
}

/* Searches the bins in which some blocks have room for `granules` and others do not. Returns a
 * block with room, or 0. Not O(1), because it goes through whole lists. */
static NOINLINE block_index search_bins(const struct bfc_pool *pool, const struct bins *bins,
                                        uint64_t granules) {
    unsigned bin = bin_of(granules);
    unsigned last = bfc_starts_aligned(granules) ? bin_of(granules + MOST_LEAD) : bin;
    for (; bin <= last; bin++)
        for (block_index b = (block_index)bins->heads[bin]; b; b = pool->blocks[b].after)
            if (block_has_room(pool, b, granules))
                return b;
    return 0;
}

static block_index find_whole(struct bfc_pool *pool, uint64_t granules) {
    const struct bins *bins = &pool->whole;
    if (!bins->words_in_use && !bins->root)
        return 0;
    if (pool->rules.exact)
        return pick_exactly(pool, bins, granules);
    block_index b = bins_pick(bins, pool->blocks, granules);
    return b ? b : search_bins(pool, bins, granules);
}

static bool is_kept_from(struct bfc_pool *pool, block_index b, uint64_t granules) {
    return growth_keeps(pool, granules << BFC_GRANULE_BITS, block_size(&pool->blocks[b]));
}

/* Whether wholly free region w is a better choice for a request than ready block b. The smaller one
 * is better. If both have the same size, it is the one at the lower address in a pool that sorts
 * free blocks, and w in any other pool. */
static bool whole_is_better(const struct bfc_pool *pool, block_index w, block_index b) {
    uint64_t of_w = block_granules(&pool->blocks[w]), of_b = block_granules(&pool->blocks[b]);
    bool first =
        !pool->rules.exact || block_start(&pool->blocks[w]) < block_start(&pool->blocks[b]);
    return of_w < of_b || (of_w == of_b && first);
}

/* Returns ready block b (0: none), or instead of it a better fitting block that fills a whole
 * region, if the pool is willing to split that region for the request. */
static block_index pick_better(struct bfc_pool *pool, block_index b, uint64_t granules) {
    block_index w = find_whole(pool, granules);
    bool better = w && (!b || whole_is_better(pool, w, b));
    return better && !is_kept_from(pool, w, granules) ? w : b;
}

static NOINLINE block_index pick_by_rules(struct bfc_pool *pool, const struct bins *bins,
                                          uint64_t granules) {
    bool ready = bins == &pool->ready;
    block_index b = pool->rules.exact ? pick_exactly(pool, bins, granules)
                                      : bins_pick(ready ? ready_for(pool, granules) : bins,
                                                  pool->blocks, granules);
    return ready ? pick_better(pool, b, granules) : b;
}

/* Returns a block of these bins with at least `granules`, or 0. O(1) unless rules.picks_by_rules is
 * set. */
static inline block_index pick_block(struct bfc_pool *pool, const struct bins *bins,
                                     uint64_t granules) {
    if (UNLIKELY(pool->rules.picks_by_rules))
        return pick_by_rules(pool, bins, granules);
    return bins_pick(bins, pool->blocks, granules);
}

block_index take_find(struct bfc_pool *pool, uint64_t granules) {
    const struct bins *bins = ready_for(pool, granules);
    return with_room(pool, bins, bins_pick(bins, pool->blocks, granules), granules);
}

block_index take_find_in(struct bfc_pool *pool, const struct bins *bins, uint64_t granules) {
    block_index b = with_room(pool, bins, pick_block(pool, bins, granules), granules);
    return b || pool->rules.exact ? b : search_bins(pool, bins, granules);
}

bool take_ready(struct bfc_pool *pool, block_index b, const struct request *request) {
    if (block_is_whole(&pool->blocks[b]))
        whole_open(pool, b);
    if (!cut_lead(pool, ready_bins(pool, b, false), b, request))
        return false;
    hand_out_ready(pool, b, request, false);
    return true;
}

/* Whether the pending block is so much smaller than the ready one that it is handed out although
 * the device must then wait for its fence. Either block may be 0, which means that none was found.
 */
static inline bool fits_better(const struct block *blocks, block_index pending, block_index ready) {
    return pending && (!ready || bin_of(block_granules(&blocks[ready])) >
                                     bin_of(block_granules(&blocks[pending])) + PENDING_ADVANTAGE);
}

static NOINLINE block_index unless_kept(struct bfc_pool *pool, block_index b, uint64_t granules) {
    return runs_keep_region(pool, b, granules) ? 0 : b;
}

/* Returns pending block b, or 0 if b's region is wholly free and the pool would rather grow than
 * split that region. Looks at the other blocks of the region only if b is larger than
 * rules.whole_above; otherwise O(1). */
static inline block_index open_pending(struct bfc_pool *pool, block_index b, uint64_t granules) {
    return UNLIKELY(pool->blocks[b].last >= pool->rules.whole_above)
               ? unless_kept(pool, b, granules)
               : b;
}

/* Serves a request for a block that must start at a multiple of BFC_ALIGNMENT. take_at_once has
 * found a ready and a pending block for it (0: none), but the better of the two does not start at
 * such a multiple. So that block may lack room, or its first part must be cut off. */
static NOINLINE bool take_with_room(struct bfc_pool *pool, block_index ready, block_index pending,
                                    const struct request *request) {
    ready = with_room(pool, ready_for(pool, request->granules), ready, request->granules);
    pending = with_room(pool, &pool->pending, pending, request->granules);
    pending = open_pending(pool, pending, request->granules);
    if (fits_better(pool->blocks, pending, ready))
        return take_pending(pool, pending, request);
    return ready && take_ready(pool, ready, request);
}

/* Takes a ready block, or with BFC_ALLOCATE_PENDING a pending one. Looks at a few blocks only, so
 * it may fail although some block has room. */
static bool take_at_once(struct bfc_pool *pool, const struct request *request) {
    const struct block *blocks = pool->blocks;
    block_index ready = pick_block(pool, &pool->ready, request->granules), pending = 0;
    if (request->flags & BFC_ALLOCATE_PENDING)
        pending = open_pending(pool, pick_block(pool, &pool->pending, request->granules),
                               request->granules);
    if (fits_better(blocks, pending, ready)) {
        if (LIKELY(starts_well(&blocks[pending], request->granules))) {
            hand_out_pending(pool, pending, request);
            return true;
        }
    } else if (LIKELY(starts_well(&blocks[ready], request->granules))) {
        return ready && take_ready(pool, ready, request);
    }
    return take_with_room(pool, ready, pending, request);
}

bool take_from_other_zone(struct bfc_pool *pool, const struct request *request) {
    uint64_t granules = request->granules;
    if (!pool->rules.small_most)
        return false;
    struct bins *bins = ready_for(pool, granules) == &pool->small ? &pool->ready : &pool->small;
    block_index b = with_room(pool, bins, bins_pick(bins, pool->blocks, granules), granules);
    if (!b)
        b = search_bins(pool, bins, granules);
    return b && take_ready(pool, b, request);
}

/* Takes a free block for the request. First looks at a few blocks only. If none of them will do,
 * searches the bins, the wholly free large regions and the regions for blocks of other sizes; this
 * is not O(1). That search is left out with BFC_ALLOCATE_HIT_ONLY, and in a pool that sorts free
 * blocks, because there the first look finds any block that fits. */
static bool take_by_search(struct bfc_pool *pool, const struct request *request) {
    if (take_at_once(pool, request))
        return true;
    if (pool->rules.exact || (request->flags & BFC_ALLOCATE_HIT_ONLY))
        return false;
    block_index b = search_bins(pool, ready_for(pool, request->granules), request->granules);
    if (!b)
        b = pick_better(pool, 0, request->granules);
    if (b)
        return take_ready(pool, b, request);
    if (pool->rules.mixes && take_from_other_zone(pool, request))
        return true;
    if (!(request->flags & BFC_ALLOCATE_PENDING))
        return false;
    b = search_bins(pool, &pool->pending, request->granules);
    b = open_pending(pool, b, request->granules);
    return b && take_pending(pool, b, request);
}

bool take_any(struct bfc_pool *pool, const struct request *request) {
    while (!take_by_search(pool, request)) {
        if (pool->oldest_fence > pool->completed)
            return false;
        settle_completed(pool, FENCES_A_CALL);
    }
    return true;
}

/* Merges b and the ready and pending blocks after it, as many as the request needs, into one block
 * that is pending under `fence`, and serves the request from it. */
static bool join_run(struct bfc_pool *pool, block_index b, bfc_fence fence,
                     const struct request *request) {
    struct block *blocks = pool->blocks;
    uint64_t *ready = &pool->stats->ready, *pending = &pool->stats->pending;
    for (bool first = true; first || !block_has_room(pool, b, request->granules); first = false) {
        block_index part = first ? b : blocks[b].next;
        if (block_state(&blocks[part]) == BLOCK_READY) {
            *ready -= block_size(&blocks[part]);
            *pending += block_size(&blocks[part]);
        }
        surgery_unlist(pool, part);
        if (!first)
            absorb_next(pool, b, true);
    }
    b = surgery_join(pool, b, BLOCK_PENDING, fence);
    return take_pending(pool, b, request);
}

bool take_run(struct bfc_pool *pool, const struct request *request) {
    bfc_fence fence;
    block_index b = runs_find(pool, request->granules, true, &fence);
    return b && !runs_keep_region(pool, b, request->granules) && join_run(pool, b, fence, request);
}

bool take_is_kept(struct bfc_pool *pool, const struct request *request) {
    bfc_fence fence;
    if (find_whole(pool, request->granules))
        return true;
    return (request->flags & BFC_ALLOCATE_PENDING) &&
           (take_find_in(pool, &pool->pending, request->granules) ||
            runs_find(pool, request->granules, true, &fence));
}

bool take_kept(struct bfc_pool *pool, const struct request *request) {
    bfc_fence fence;
    block_index b = find_whole(pool, request->granules);
    if (b || !(request->flags & BFC_ALLOCATE_PENDING))
        return b && take_ready(pool, b, request);
    b = take_find_in(pool, &pool->pending, request->granules);
    if (b)
        return take_pending(pool, b, request);
    b = runs_find(pool, request->granules, true, &fence);
    return b && join_run(pool, b, fence, request);
}
