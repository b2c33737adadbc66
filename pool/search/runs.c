#include "pool/search/runs.h"

#include "pool/policy/growth.h"
#include "pool/policy/policy.h"

/* Whether b is ready, or would be once all fences up to `fence` are complete. */
static bool is_usable(const struct bfc_pool *pool, block_index b, bfc_fence fence) {
    enum block_state state = block_state(&pool->blocks[b]);
    return state == BLOCK_READY || (state == BLOCK_PENDING && pool->details[b].fence <= fence);
}

/* A run here consists of neighbouring blocks that are ready once all fences up to `fence` are
 * complete. Returns the first block of the first run, from b on, that has room for `granules`.
 * Stops at the first block that is neither ready nor pending; 0: there is no such run before that
 * block. */
static block_index run_at(const struct bfc_pool *pool, block_index b, uint64_t granules,
                          bfc_fence fence) {
    uint64_t run = 0;
    for (block_index first = b; is_usable(pool, b, UINT64_MAX); b = pool->blocks[b].next) {
        if (!is_usable(pool, b, fence)) {
            first = pool->blocks[b].next;
            run = 0;
            continue;
        }
        run += block_granules(&pool->blocks[b]);
        if (run >= granules + block_lead(pool, first, granules))
            return first;
    }
    return 0;
}

/* Returns the first of the neighbouring ready and pending blocks around pending block b. 0: a block
 * before b among them is pending as well. The caller visits all pending blocks, and would otherwise
 * look at the same neighbours once for each of them. */
static block_index run_start(const struct bfc_pool *pool, block_index b) {
    block_index before = pool->blocks[b].previous;
    enum block_state state = block_state(&pool->blocks[before]);
    if (state == BLOCK_PENDING)
        return 0;
    if (state != BLOCK_READY)
        return b;
    block_index earlier = pool->blocks[before].previous;
    return block_state(&pool->blocks[earlier]) == BLOCK_PENDING ? 0 : before;
}

/* Searches by bisection for the lowest fence whose completion makes room for `granules` in the
 * blocks from `start` on. The caller knows that completing `highest` makes room. */
static bfc_fence lowest_fence(const struct bfc_pool *pool, block_index start, uint64_t granules,
                              bfc_fence highest) {
    bfc_fence lowest = pool->oldest_fence;
    while (lowest < highest) {
        bfc_fence middle = lowest + (highest - lowest) / 2;
        if (run_at(pool, start, granules, middle))
            highest = middle;
        else
            lowest = middle + 1;
    }
    return highest;
}

/* Whether b lies in a region for blocks of other sizes: for small blocks although the request is
 * large, or for large blocks although it is small. */
static bool wrong_zone(const struct bfc_pool *pool, block_index b, uint64_t granules) {
    return pool->rules.exact &&
           block_zone(&pool->blocks[b]) != policy_zone(pool, granules << BFC_GRANULE_BITS);
}

/* Whether the policy would let the request take the block that results if as many blocks from
 * `first` on as the request needs are merged. Does not merge them. */
static bool policy_fits_run(const struct bfc_pool *pool, block_index first, uint64_t granules) {
    uint64_t run = 0, needed = granules + block_lead(pool, first, granules);
    for (block_index b = first; run < needed; b = pool->blocks[b].next)
        run += block_granules(&pool->blocks[b]);
    return policy_fits(pool, granules << BFC_GRANULE_BITS, run << BFC_GRANULE_BITS);
}

block_index runs_find(const struct bfc_pool *pool, uint64_t granules, bool for_reuse,
                      bfc_fence *fence) {
    block_index found = 0;
    bfc_fence best = UINT64_MAX;
    for (block_index b = pool->pending_list.oldest; b; b = pool->details[b].newer) {
        block_index start = run_start(pool, b);
        if (!start || (for_reuse && !is_open_pending(pool, b)) || wrong_zone(pool, b, granules))
            continue;
        /* This run has room without waiting for any fence, and was not taken only because the
         * policy refuses its blocks. Waiting would not change that. */
        if (run_at(pool, start, granules, pool->completed))
            continue;
        if (!run_at(pool, start, granules, best - 1))
            continue;
        bfc_fence lowest = lowest_fence(pool, start, granules, best - 1);
        block_index first = run_at(pool, start, granules, lowest);
        if (policy_fits_run(pool, first, granules)) {
            best = lowest;
            found = first;
        }
    }
    *fence = best;
    return found;
}

/* Returns the size of the region of free block b, in bytes, if all of the region's blocks are ready
 * or pending; otherwise 0. */
static uint64_t free_region_size(const struct bfc_pool *pool, block_index b) {
    uint64_t bytes = 0;
    while (is_usable(pool, pool->blocks[b].previous, UINT64_MAX))
        b = pool->blocks[b].previous;
    if (block_state(&pool->blocks[pool->blocks[b].previous]) != BLOCK_HEAD)
        return 0;
    for (; b; b = pool->blocks[b].next) {
        if (!is_usable(pool, b, UINT64_MAX))
            return 0;
        bytes += block_size(&pool->blocks[b]);
    }
    return bytes;
}

/* runs_keep_region decides whether the pool grows rather than split a wholly free region. A region
 * with pending blocks cannot go back to the device before they are ready, so there is less to gain
 * from keeping it whole: unless other jobs want memory, it counts as only 1 / PENDING_WORTH of its
 * size. */
#define PENDING_WORTH 2

bool runs_keep_region(struct bfc_pool *pool, block_index b, uint64_t granules) {
    uint64_t size = pool->paging ? 0 : free_region_size(pool, b);
    uint64_t worth = pool->wanted_elsewhere ? size : size / PENDING_WORTH;
    return size >> BFC_GRANULE_BITS > pool->rules.whole_above &&
           growth_keeps(pool, granules << BFC_GRANULE_BITS, worth);
}
