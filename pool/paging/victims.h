/* Choosing pages that may be taken away: ready ones. Under the lock, with the pages' turn. */
#ifndef BFC_POOL_VICTIMS_H
#define BFC_POOL_VICTIMS_H

#include "pool/blocks/state.h"
#include "pool/structures/page_table.h"

/*
 * Puts ready pages that are not pinned on hand, in the place of what was there, until they come to
 * `wanted` bytes or there are no more: those of the largest blocks first, from their upper ends. No
 * page is taken from the blocks `keep`, which may be 0, nor from regions that are set apart.
 * Returns how many bytes they come to, which may be more than `wanted`, but no page is superfluous.
 * O(free blocks + pages).
 */
uint64_t victims_choose(struct bfc_pool *pool, uint64_t wanted, const block_index keep[2]);

/* The same, and then those of regions that are set apart. */
uint64_t victims_choose_anywhere(struct bfc_pool *pool, uint64_t wanted);

/* How many bytes of pages that victims_choose_anywhere finds there are; what is on hand stays.
 * O(free blocks of a page or more), times a search for each unless all pages are one granule. */
uint64_t victims_ready(const struct bfc_pool *pool);

/* Bytes of pages that are not ready, but will be once all pending and deferred blocks are; not of
 * those that are awaited. O(neighbours of these blocks + pages there). */
uint64_t victims_to_come(const struct bfc_pool *pool);

/* Takes the pages on hand from the table, and makes their addresses bare. False: the host has no
 * memory for that, and nothing has changed. */
bool victims_take(struct bfc_pool *pool);

/* The end of the run of pages on hand, each next to the last, that begins at `from`. */
uint32_t victims_run(const struct page_array *on_hand, uint32_t from, uint32_t count);

#endif
