/*
 * Takes free blocks for a request. The inline functions are on the path of nearly every allocation.
 *
 * Everything here is called under the lock.
 */
#ifndef BFC_POOL_TAKE_H
#define BFC_POOL_TAKE_H

#include "base/compiler.h"
#include "pool/blocks/surgery.h"
#include "pool/policy/policy.h"

/* Takes a free block for the request, after making blocks with complete fences ready as far as
 * needed. False: no free block can serve the request. */
bool take_any(struct bfc_pool *pool, const struct request *request);
/* Whether the request could be cut from a region that the pool keeps whole. To be called after
 * take_any and take_run have found nothing. */
bool take_is_kept(struct bfc_pool *pool, const struct request *request);
/* Takes the request from a region that the pool keeps whole. False: none has room. */
bool take_kept(struct bfc_pool *pool, const struct request *request);
/* With rules.small_most: takes a small request from a region for large blocks, or a large request
 * from a region for small blocks. False: no ready block there has room. */
bool take_from_other_zone(struct bfc_pool *pool, const struct request *request);
/* Hands out part or all of a ready block. False: the host has no memory for a record. */
bool take_ready(struct bfc_pool *pool, block_index b, const struct request *request);
/* Returns a ready block with room for `granules` granules, outside whole regions and without a
 * search; or 0. Not for pools whose free blocks are sorted. */
block_index take_find(struct bfc_pool *pool, uint64_t granules);
/* Returns a block of these bins with room for `granules` granules, even if the pool keeps its
 * region whole; or 0. */
block_index take_find_in(struct bfc_pool *pool, const struct bins *bins, uint64_t granules);
/* Merges neighbouring ready and pending blocks under the highest of their fences, and takes the
 * request from the result. False: no such blocks have room, or the pool keeps their region whole.
 */
bool take_run(struct bfc_pool *pool, const struct request *request);

/* Draws a new batch of ids from a counter of the process. */
void take_more_ids(struct bfc_pool *pool);

static inline void raise_peak(uint64_t *peak, uint64_t now) {
    if (now > *peak)
        *peak = now;
}

static inline uint64_t take_id(struct bfc_pool *pool) {
    if (UNLIKELY(pool->next_id > pool->last_id))
        take_more_ids(pool);
    return pool->next_id++;
}

static inline void make_live(struct bfc_pool *pool, block_index b, const struct request *request,
                             bfc_fence fence) {
    struct block *at = &pool->blocks[b];
    struct bfc_pool_stats *stats = pool->stats;
    block_set_state(at, BLOCK_LIVE);
    uint64_t id = take_id(pool), size = block_size(at);
    block_identify(pool, b, id, request->bytes, fence);
    map_insert(&pool->map, pool->blocks, b);
    stats->in_use += size;
    stats->requested += request->bytes;
    stats->blocks++;
    stats->allocations++;
    raise_peak(&stats->peak_in_use, stats->in_use);
    raise_peak(&stats->peak_requested, stats->requested);
    *request->out = (struct bfc_block_info){.start = block_start(at),
                                            .size = size,
                                            .requested = request->bytes,
                                            .id = id,
                                            .fence = fence,
                                            .live = true};
    if (UNLIKELY(pool->notes_left))
        pool_note(pool, id, request->bytes);
}

/*
 * Removes what the request needs from free block b, which is in `bins`, and returns it as a block
 * in no bin. That is b itself if b has the right size, the policy does not split it, or the host
 * has no memory for a record. Otherwise b keeps the rest, its bin and its place in lists.
 */
static ALWAYS_INLINE block_index take_off(struct bfc_pool *pool, struct bins *bins, block_index b,
                                          const struct request *request, bool plain) {
    struct block *blocks = pool->blocks;
    if (block_granules(&blocks[b]) > request->granules &&
        (plain || LIKELY(pool->rules.cuts_all) ||
         policy_splits(pool, request_size(request), block_size(&blocks[b])))) {
        bins_begin_resize(bins, blocks, b, plain);
        block_index front = split_front(pool, b, request->granules);
        bins_end_resize(bins, blocks, b, plain);
        if (LIKELY(front))
            return front;
    }
    bins_remove(bins, blocks, b, plain);
    return b;
}

/* Whether a block of this many granules may start where b does, judging by the address alone. */
static inline bool starts_well(const struct block *b, uint64_t granules) {
    return granules < LARGE_GRANULES || !(b->tagged & (BFC_LARGE - BFC_GRANULE));
}

static ALWAYS_INLINE void hand_out_ready(struct bfc_pool *pool, block_index b,
                                         const struct request *request, bool plain) {
    b = take_off(pool, ready_bins(pool, b, plain), b, request, plain);
    pool->stats->ready -= block_size(&pool->blocks[b]);
    make_live(pool, b, request, BFC_NO_FENCE);
}

#endif
