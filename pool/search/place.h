/*
 * Hands out a block at an address that the caller names, as a plan requires. The inline functions
 * serve the usual case: they find the ready block at that address by a few steps from a live block
 * shortly before it, and the whole range lies in that ready block.
 *
 * Called under the lock.
 */
#ifndef BFC_POOL_PLACE_H
#define BFC_POOL_PLACE_H

#include "base/compiler.h"
#include "pool/blocks/surgery.h"
#include "pool/search/take.h"

/* How many neighbouring blocks at most a search by address passes, from a block that is known to
 * the one that holds the address. */
#define PLACE_STEPS 16

/* The result of an attempt to allocate at a given address. Each value is the status that
 * bfc_pool_allocate_at returns, except PLACE_PENDING, which it replaces by BFC_OUT_OF_MEMORY. */
enum place_state {
    PLACE_TAKEN = BFC_OK,
    PLACE_BUSY = BFC_OUT_OF_MEMORY, /* a part of the range is live, deferred, awaited or bare */
    PLACE_OUTSIDE = BFC_UNKNOWN_POINTER, /* the range is not within one region */
    /* a block of that size must start at a multiple of BFC_ALIGNMENT, which `at` is not */
    PLACE_MISALIGNED = BFC_INVALID_POINTER,
    PLACE_NO_HOST_MEMORY = BFC_NO_HOST_MEMORY,
    /* a part of the range is pending, and the request may take only ready memory */
    PLACE_PENDING = 100,
};

/* Returns the block that holds the address `at`; 0: no region holds it. `below` has two hints, each
 * the start of a live block shortly before `at`, or 0. The caller has already searched from
 * below[0], in vain. This function searches from below[1], and then in all regions. Updates both
 * hints for the next call. */
block_index place_find(const struct bfc_pool *pool, bfc_addr at, bfc_addr below[BFC_PLACE_HINTS]);

/* Makes the request's granules live from the address `at` on if the request may take all of them;
 * otherwise no block changes. `at` lies in block b (0: in no region), and the granules may span
 * several free blocks. */
enum place_state place_take_any(struct bfc_pool *pool, block_index b, bfc_addr at,
                                const struct request *request);

/* Takes the request's granules from the first address in block b where a block of that size may
 * start. The range may extend into free blocks after b. False: the request may not take all of the
 * range, or the host has no memory for the records. */
bool place_take_in(struct bfc_pool *pool, block_index b, const struct request *request);

/* Serves the request from the smallest ready block with room, even if the policy refuses that
 * block. Takes exactly the request's granules. Only for pools whose free blocks are sorted. False:
 * no block has room, or the host has no memory for the records. */
bool place_take_smallest(struct bfc_pool *pool, const struct request *request);

/* Returns the block that holds the address `at` if it is the live block that starts at `below`, or
 * one of the PLACE_STEPS - 1 blocks after that. 0: it is none of them, or no live block starts at
 * `below`. */
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
    return !bfc_starts_aligned(granules) || !(at & (BFC_ALIGNMENT - 1)) ||
           (at == block_start(&blocks[b]) &&
            block_state(&blocks[blocks[b].previous]) == BLOCK_HEAD);
}

/* Cuts the request's granules out of ready block b, from `lead` granules after b's start on, and
 * makes them live. The caller has made sure that the bins of b are not sorted, and that two block
 * records are vacant, so that this cannot fail. */
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
 * block changes. `below` holds BFC_PLACE_HINTS hints, each the start of a live block shortly before
 * `at`, or 0. If a live block still starts at one of them, no search is needed. Updates the hints.
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
