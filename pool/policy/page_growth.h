/*
 * Growth with pages: decides when the pool makes new pages rather than moves free ones, how many
 * and how large they are, and when small blocks get pages of their own. A new rule of growth with
 * pages goes here. Called under the lock. Sizes are in bytes.
 */
#ifndef BFC_POOL_PAGE_GROWTH_H
#define BFC_POOL_PAGE_GROWTH_H

#include "pool/blocks/state.h"

/* Returns how much a request of `bytes`, before rounding, may add to `reserved` before the pool
 * moves free pages instead; in whole granules of pages. Does not consider the limit. */
uint64_t page_growth_room(const struct bfc_pool *pool, uint64_t bytes);

/* Returns how much the pool makes beyond what a request lacks, if there is room for it, so that the
 * next requests find free memory. */
uint64_t page_growth_step(const struct bfc_pool *pool);

/* Returns the size of each new page for a block of so many bytes; the last page may be smaller. */
uint64_t page_growth_size(const struct bfc_pool *pool, uint64_t block);

/* Returns the size of the largest page that should hold a block of so many bytes. */
uint64_t page_growth_most(const struct bfc_pool *pool, uint64_t block);

/* Notes that the device refused a step of `bytes` after `made` bytes of it, which went back unused.
 * The next steps are at most half of `made`, or half of `bytes` if nothing was made; pages that are
 * made raise that bound again. */
void page_growth_refused(struct bfc_pool *pool, uint64_t bytes, uint64_t made);

/* Notes that so many bytes of new pages were made: `count` pages of `page` bytes, of which the last
 * may be smaller. */
void page_growth_made(struct bfc_pool *pool, uint64_t bytes, uint64_t page, uint64_t count);

/* Notes that so many bytes of pages have moved to where a request needed them. */
void page_growth_moved(struct bfc_pool *pool, uint64_t bytes);

#endif
