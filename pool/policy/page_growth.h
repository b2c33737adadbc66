/*
 * Growth with pages: when new ones are made rather than free ones moved, how many at once, how
 * large, and when small blocks get pages of their own. A new rule goes here. Called under the lock.
 * Sizes in bytes.
 */
#ifndef BFC_POOL_PAGE_GROWTH_H
#define BFC_POOL_PAGE_GROWTH_H

#include "pool/blocks/state.h"

/* What a request of `bytes`, as asked for, may add to `reserved` before free pages are moved; whole
 * granules. The limit is not considered. */
uint64_t page_growth_room(const struct bfc_pool *pool, uint64_t bytes);

/* What is made beyond what is lacking, if there is room for it, so that the next requests hit. */
uint64_t page_growth_step(const struct bfc_pool *pool);

/* The size of each new page, but the last one, that is made for a block of so many bytes. */
uint64_t page_growth_size(const struct bfc_pool *pool, uint64_t block);

/* No page larger than this should have a block of so many bytes in it. */
uint64_t page_growth_most(const struct bfc_pool *pool, uint64_t block);

/* The device refused so many bytes, after it had made so many of them: later steps ask for less,
 * since what was made went back for nothing. */
void page_growth_refused(struct bfc_pool *pool, uint64_t bytes, uint64_t made);

/* So many bytes of new pages were made: `count`, of this size but the last one. */
void page_growth_made(struct bfc_pool *pool, uint64_t bytes, uint64_t page, uint64_t count);

/* So many bytes of pages have moved to where a request needed them. */
void page_growth_moved(struct bfc_pool *pool, uint64_t bytes);

#endif
