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

/* Takes a free block for the request. If none fits, makes pending blocks with complete fences
 * ready, a few at a time, and tries again. False: no free block can serve the request. */
bool take_any(struct bfc_pool *pool, const struct request *request);
/* Whether the request fits into a region that is wholly free, but was not split for it, so that it
 * can go back to the device. To be called after take_any and take_run have found nothing. */
bool take_is_kept(struct bfc_pool *pool, const struct request *request);
/* Serves the request from a region that is wholly free and that the pool has avoided splitting so
 * far. False: no such region has room. */
bool take_kept(struct bfc_pool *pool, const struct request *request);
/* Where small blocks have regions of their own: serves a small request from a region for large
 * blocks, or a large request from a region for small blocks. False: no ready block there has
 * room. */
bool take_from_other_zone(struct bfc_pool *pool, const struct request *request);
/* Hands out ready block b or a part of it. False: the host has no memory for a block record. */
bool take_ready(struct bfc_pool *pool, block_index b, const struct request *request);
/* Returns a ready block that has room for `granules`, but none that fills a large region; 0: none
 * was found. O(1), so it may overlook a block. Not for pools whose free blocks are sorted. */
block_index take_find(struct bfc_pool *pool, uint64_t granules);
/* Returns a block of these bins that has room for `granules`, even if the pool would rather keep
 * the block's region wholly free; 0: there is none. */
block_index take_find_in(struct bfc_pool *pool, const struct bins *bins, uint64_t granules);
/* Merges neighbouring ready and pending blocks into one that is pending under the highest of their
 * fences, and serves the request from it. False: no such neighbours have room, or their region is
 * wholly free and the pool would rather grow than split it. */
bool take_run(struct bfc_pool *pool, const struct request *request);

/* Reserves the next 65,536 block ids for this pool. All pools of the process take them from one
 * counter, so an id is unique in the process. */
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

/* Makes block b of `size` bytes live under a new id. Unlike make_live it calls no function: the
 * caller must see to it that the map need not grow, and that no notes are taken. */
static ALWAYS_INLINE void put_live(struct bfc_pool *pool, block_index b, uint64_t size,
                                   const struct request *request, uint64_t id, bfc_fence fence) {
    struct block *at = &pool->blocks[b];
    struct bfc_pool_stats *stats = pool->stats;
    struct bfc_block_info *out = request->out;
    block_set_state(at, BLOCK_LIVE);
    block_identify(pool, b, size, id, request->bytes, fence);
    map_link(&pool->map, pool->blocks, b);
    stats->in_use += size;
    stats->requested += request->bytes;
    stats->blocks++;
    stats->allocations++;
    raise_peak(&stats->peak_in_use, stats->in_use);
    raise_peak(&stats->peak_requested, stats->requested);
    out->start = block_start(at);
    out->size = size;
    out->requested = request->bytes;
    out->id = id;
    out->fence = fence;
}

static inline void make_live(struct bfc_pool *pool, block_index b, const struct request *request,
                             bfc_fence fence) {
    uint64_t id = take_id(pool);
    put_live(pool, b, block_size(&pool->blocks[b]), request, id, fence);
    if (UNLIKELY(pool->map.count > pool->map.most))
        map_grow(&pool->map, pool->blocks);
    if (UNLIKELY(pool->notes_left))
        pool_note(pool, id, request->bytes);
}

/*
 * Removes what the request needs from free block b, which is in `bins`, and returns it as a block
 * that is in no bin. Returns b itself if b has the right size, if the policy does not split it, or
 * if the host has no memory for a new record. Otherwise b keeps the rest, and stays in its bin and
 * its list.
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

/* Whether a block of this many granules may start where b does, judged by the address alone: the
 * first block of a region may start anywhere, but this function does not know which block is the
 * first. */
static inline bool starts_well(const struct block *b, uint64_t granules) {
    return !bfc_starts_aligned(granules) || !(b->tagged & (BFC_ALIGNMENT - BFC_GRANULE));
}

static ALWAYS_INLINE void hand_out_ready(struct bfc_pool *pool, block_index b,
                                         const struct request *request, bool plain) {
    b = take_off(pool, ready_bins(pool, b, plain), b, request, plain);
    pool->stats->ready -= block_size(&pool->blocks[b]);
    make_live(pool, b, request, BFC_NO_FENCE);
}

#endif
