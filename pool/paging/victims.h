/* Chooses ready pages, to be moved or given back. Called under the lock, with growth_lock. Sizes in
 * bytes. */
#ifndef BFC_POOL_VICTIMS_H
#define BFC_POOL_VICTIMS_H

#include "pool/blocks/pool_state.h"
#include "pool/structures/page_table.h"

/*
 * Fills on_hand with ready pages that are not pinned, until they have `wanted` bytes or there are
 * no more. Pages of the largest blocks come first, those at their upper ends before others. No page
 * is taken from the two blocks `keep` (which may be NULL). Pages of regions that are set apart are
 * taken last, and only with `anywhere`. Returns the sum of the pages, which may exceed `wanted`,
 * but not by a whole page. O(free blocks + pages).
 */
uint64_t victims_choose(struct bfc_pool *pool, uint64_t wanted, const block_index keep[2],
                        bool anywhere);

/* Returns the bytes of all pages that victims_choose would find anywhere; leaves on_hand alone.
 * O(free blocks of a page or more), times a search for each unless all pages are one granule. */
uint64_t victims_ready(const struct bfc_pool *pool);

/* Returns how many bytes of pages are not ready, but will be once all pending and deferred blocks
 * are. O(neighbours of these blocks + pages there). */
uint64_t victims_to_come(const struct bfc_pool *pool);

/* Removes the pages of on_hand from the page table, and makes their addresses bare. False: the host
 * has no memory for that, and nothing has changed. */
bool victims_take(struct bfc_pool *pool);

/* Returns where the run of neighbouring pages ends that begins at index `from`: the index after its
 * last page, at most `count`. */
uint32_t victims_run(const struct page_array *pages, uint32_t from, uint32_t count);

#endif
