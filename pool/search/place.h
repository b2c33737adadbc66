/*
 * Hands out a block at an address that the caller names, as a plan requires. The inline functions
 * serve the usual case: a live block shortly before the address leads to it, and the whole range
 * lies in one ready block.
 *
 * Called under the lock.
 */
#ifndef BFC_POOL_PLACE_H
#define BFC_POOL_PLACE_H

#include "base/compiler.h"
#include "pool/blocks/surgery.h"
#include "pool/search/take.h"

/* How many neighbouring blocks a search looks at to get from a known block to an address. */
#define PLACE_STEPS 16

/* Whether a place could be taken. All values but PLACE_PENDING are what bfc_pool_allocate_at
 * returns. */
enum place_state {
    PLACE_TAKEN = BFC_OK,
    PLACE_BUSY = BFC_OUT_OF_MEMORY, /* a part of the range is live, deferred, awaited or bare */
    PLACE_OUTSIDE = BFC_UNKNOWN_POINTER, /* the range is not within one region */
    PLACE_CROOKED = BFC_INVALID_POINTER, /* a large block may not start at that address */
    PLACE_NO_HOST_MEMORY = BFC_NO_HOST_MEMORY,
    /* a part of the range is pending, and the request may not take pending memory */
    PLACE_PENDING = 100,
};

/* Returns the block that holds `at`; 0: no region does. Tries the second hint, then searches, and
 * updates both hints. The caller has tried the first hint in vain. */
block_index place_find(const struct bfc_pool *pool, bfc_addr at, bfc_addr below[BFC_PLACE_HINTS]);

/* As place_take, for a range that starts in block b (0: in no region) and may span several free
 * blocks. */
enum place_state place_take_any(struct bfc_pool *pool, block_index b, bfc_addr at,
                                const struct request *request);

/* Takes the request's granules from the first address in block b where a block of that size may
 * start; the range may go on in free blocks after b. */
bool place_take_in(struct bfc_pool *pool, block_index b, const struct request *request);

/* Takes exactly the request's granules from the smallest ready block with room, of either zone. No
 * rule of the policy applies except the granule. Only for pools whose free blocks are sorted.
 * False: no block has room, or the host has no memory for the records. */
bool place_take_smallest(struct bfc_pool *pool, const struct request *request);

/* Returns the block that holds `at` if it is among the PLACE_STEPS blocks from the live block at
 * `below` on. 0: it is not, or no live block starts at `below`. */
static inline block_index place_find_from(const struct bfc_pool *pool, bfc_addr at,
                                          bfc_addr below) {
    const struct block *blocks = pool->blocks;
    block_index b = below ? map_find(&pool->map, blocks, below) : 0;
    for (int i = 0; b && i < PLACE_STEPS; i++, b = blocks[b].next)
        if (at - block_start(&blocks[b]) < block_size(&blocks[b]))
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

/* Makes the request's granules live that lie `lead` granules after the start of ready block b. The
 * bins of b are not sorted, and at least two records are vacant. */
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
 * Hands out the request's granules from the address `at` on if all of them are free; otherwise no
 * block changes. `below` holds BFC_PLACE_HINTS hints, each of them the start of a live block
 * shortly before `at`, or 0. A hint that still holds saves the search. Updates the hints.
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
