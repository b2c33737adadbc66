/*
 * Taking a place that the caller names: the inline part is for one that is found from a live block
 * before it and lies in one ready block, as it does when a plan is followed.
 *
 * Called under the lock.
 */
#ifndef BFC_POOL_PLACE_H
#define BFC_POOL_PLACE_H

#include "base/compiler.h"
#include "pool/blocks/surgery.h"
#include "pool/search/take.h"

/* Blocks that are passed from one that is known to lie before a place. */
#define PLACE_STEPS 16

enum place_state {
    PLACE_TAKEN,
    PLACE_BUSY,    /* a part of it is live, deferred, awaited or bare */
    PLACE_PENDING, /* a part of it is pending, and the request may not have that */
    PLACE_OUTSIDE, /* it is not within one region */
    PLACE_CROOKED, /* a large block may not start at this address */
    PLACE_NO_HOST_MEMORY,
};

/* The block that holds the address, wherever it is, or 0; brings the hints up to date. The first
 * one was tried. */
block_index place_find(const struct bfc_pool *pool, bfc_addr at, bfc_addr below[BFC_PLACE_HINTS]);

/* place_take for a place that begins in b, and may lie in several free blocks. */
enum place_state place_take_any(struct bfc_pool *pool, block_index b, bfc_addr at,
                                const struct request *request);

/* Takes the smallest ready block that has room where free blocks are sorted, of either zone and cut
 * at any rate, as no rule of the policy but the granule applies. False: there is none. */
bool place_take_smallest(struct bfc_pool *pool, const struct request *request);

static inline bool place_is_in(const struct block *b, bfc_addr address) {
    return address - block_start(b) < block_size(b);
}

/* The block that holds the address, from a live one shortly before it; 0: not from there. */
static inline block_index place_find_from(const struct bfc_pool *pool, bfc_addr at,
                                          bfc_addr below) {
    const struct block *blocks = pool->blocks;
    block_index b = below ? map_find(&pool->map, blocks, below) : 0;
    for (int i = 0; b && i < PLACE_STEPS; i++, b = blocks[b].next)
        if (place_is_in(&blocks[b], at))
            return b;
    return 0;
}

static inline bool place_may_start(const struct bfc_pool *pool, block_index b, bfc_addr at,
                                   uint64_t granules) {
    const struct block *blocks = pool->blocks;
    return granules < LARGE_GRANULES || !(at & (BFC_LARGE - 1)) ||
           (at == block_start(&blocks[b]) &&
            block_state(&blocks[blocks[b].previous]) == BLOCK_HEAD);
}

/* Cuts the place out of one ready block in bins that are not sorted; there are records for that. */
static ALWAYS_INLINE void place_cut_out(struct bfc_pool *pool, block_index b, uint64_t lead,
                                        const struct request *request) {
    struct block *blocks = pool->blocks;
    struct bins *bins = ready_bins(pool, b, false);
    uint64_t rest = block_granules(&blocks[b]) - lead - request->granules;
    block_index taken = b;
    if (!lead && !rest) {
        bins_remove(bins, blocks, b, true);
    } else {
        bins_begin_resize(bins, blocks, b, true);
        if (lead && rest)
            bins_insert(bins, blocks, split_back(pool, b, rest), true);
        taken =
            lead ? split_back(pool, b, request->granules) : split_front(pool, b, request->granules);
        bins_end_resize(bins, blocks, b, true);
    }
    pool->stats->ready -= request_size(request);
    make_live(pool, taken, request, BFC_NO_FENCE);
}

/*
 * Hands out exactly the place from `at` on that the request needs, if all of it is free; nothing
 * has changed otherwise. `below` is where live blocks may start that lie shortly before the place,
 * or 0: then the place is found without a search; they are brought up to date.
 */
static ALWAYS_INLINE enum place_state place_take(struct bfc_pool *pool, bfc_addr at,
                                                 const struct request *request, bfc_addr *below) {
    block_index b = place_find_from(pool, at, below[0]);
    if (UNLIKELY(!b))
        b = place_find(pool, at, below);
    const struct block *holder = &pool->blocks[b];
    if (UNLIKELY(!b || !block_is_open(holder) || block_end(holder) < at + request_size(request) ||
                 pool->rules.exact || pool->high - 1 - pool->records < 2 ||
                 !place_may_start(pool, b, at, request->granules)))
        return place_take_any(pool, b, at, request);
    place_cut_out(pool, b, (at - block_start(holder)) >> BFC_GRANULE_BITS, request);
    return PLACE_TAKEN;
}

#endif
