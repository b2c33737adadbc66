/*
 * Taking free blocks for a request: the inline part, which the hot call is made of, and the
 * searches.
 *
 * Everything here is called under the lock.
 */
#ifndef BFC_POOL_TAKE_H
#define BFC_POOL_TAKE_H

#include "base/compiler.h"
#include "pool/blocks/surgery.h"
#include "pool/policy/policy.h"

/* Takes a block that fits, by whatever search and settling that needs; false: there is none. */
bool take_any(struct bfc_pool *pool, const struct request *request);
/* After take_any and take_run took nothing: could the request be cut from a region that is kept
 * whole? */
bool take_is_kept(struct bfc_pool *pool, const struct request *request);
/* Takes from a region that is kept whole; false: there is none with room. */
bool take_kept(struct bfc_pool *pool, const struct request *request);
/* Takes a ready block where this size does not belong, with rules.small_most; false: there is none.
 */
bool take_from_other_zone(struct bfc_pool *pool, const struct request *request);
/* Hands out part or all of a ready block. False: the host has no memory for a record. */
bool take_ready(struct bfc_pool *pool, block_index b, const struct request *request);
/* The ready block that a request of so many granules would be handed, but for searches; or 0. Not
 * where free blocks are sorted. */
block_index take_find(struct bfc_pool *pool, uint64_t granules);
/* A ready block, of regions that are set apart, with room for so many granules; or 0. */
block_index take_find_apart(struct bfc_pool *pool, uint64_t granules);
/* Merges neighbouring ready and pending blocks under the higher fence, and takes from the result;
 * false: there are none, or their region is kept whole. */
bool take_run(struct bfc_pool *pool, const struct request *request);

/* A new batch of ids. */
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

/* Is this larger block to be split for the request? */
static inline bool is_cut(const struct bfc_pool *pool, block_index b,
                          const struct request *request) {
    return LIKELY(pool->rules.cuts_all) ||
           policy_splits(pool, request_size(request), block_size(&pool->blocks[b]));
}

/*
 * Takes what the request needs from a free block that is in these bins. Returns it, in no bin: b
 * itself if b is not split, or cannot be because the host has no memory for a record. The rest
 * keeps its place in other lists.
 */
static ALWAYS_INLINE block_index take_off(struct bfc_pool *pool, struct bins *bins, block_index b,
                                          const struct request *request, bool plain) {
    struct block *blocks = pool->blocks;
    if (block_granules(&blocks[b]) > request->granules && (plain || is_cut(pool, b, request))) {
        bins_begin_resize(bins, blocks, b, plain);
        block_index front = split_front(pool, b, request->granules);
        bins_end_resize(bins, blocks, b, plain);
        if (LIKELY(front))
            return front;
    }
    bins_remove(bins, blocks, b, plain);
    return b;
}

/* May a block of this many granules start where b does, judging by the address alone? */
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
