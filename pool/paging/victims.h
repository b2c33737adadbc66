/* Chooses ready pages that will be moved or given back. Called under the lock; the caller holds
 * growth_lock. Sizes are in bytes. */
#ifndef BFC_POOL_VICTIMS_H
#define BFC_POOL_VICTIMS_H

#include "pool/blocks/pool_state.h"
#include "pool/structures/page_table.h"

/*
 * Fills the array on_hand with ready pages that are not pinned, until they have `wanted` bytes
 * together or no further page is ready. Takes pages of larger blocks first (where free blocks are
 * sorted: of smaller blocks), and within a block from its upper end on. Takes none from the two
 * blocks `keep` (which may be NULL). Takes pages of regions that are set apart last, and only with
 * `anywhere`. Returns the sum of the pages' bytes, which may exceed `wanted` by less than a page.
 * O(free blocks + pages).
 */
uint64_t victims_choose(struct bfc_pool *pool, uint64_t wanted, const block_index keep[2],
                        bool anywhere);

/* Returns the bytes of all pages that victims_choose could choose with `anywhere`; does not change
 * the array on_hand. O(free blocks of a page or more), and a search of the page table for each
 * unless all pages have the smallest size. */
uint64_t victims_ready(const struct bfc_pool *pool);

/* Returns the bytes of the pages that are not ready now, but will be once all pending and deferred
 * blocks are. O(neighbours of these blocks + pages there). */
uint64_t victims_to_come(const struct bfc_pool *pool);

/* Removes the pages of the array on_hand from the page table, and makes their addresses bare.
 * False: the host has no memory for the block records, and nothing has changed. */
bool victims_take(struct bfc_pool *pool);

/* Returns the index after the last page of the run of neighbouring pages that begins at index
 * `from`, or `count` if that is lower. */
uint32_t victims_run(const struct page_array *pages, uint32_t from, uint32_t count);

#endif
