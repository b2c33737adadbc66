/* Taking regions in, growing, giving them back. Called under the lock. */
#ifndef BFC_POOL_REGIONS_H
#define BFC_POOL_REGIONS_H

#include "pool/blocks/state.h"

enum bfc_status region_add(struct bfc_pool *pool, bfc_addr start, uint64_t size,
                           enum block_zone zone);
/* The one ready block that is the whole region; or 0, also if the region is of pages. */
block_index region_idle_block(const struct bfc_pool *pool, const struct region *region);
/* Gives an idle region back; drops the lock meanwhile. Returns its size, or 0: it did not go, and
 * is the pool's as before. */
uint64_t region_release(struct bfc_pool *pool, region_index r);
uint64_t regions_release(struct bfc_pool *pool, uint64_t bytes); /* drops the lock meanwhile */
uint64_t regions_releasable(const struct bfc_pool *pool);
/* The first block of a region without pages in which nothing is live or awaited; else 0. */
block_index region_freed_block(const struct bfc_pool *pool, const struct region *region);
/* By pages, where the pool has them; by a region where it has none, or where one of their calls is
 * refused for another reason than a lack of memory. */
bool regions_grow(struct bfc_pool *pool, const struct request *request, enum bfc_status *status);
/* One region of just so many bytes, if the limit and the device allow it. With the growth turn;
 * drops the lock meanwhile. */
enum bfc_status regions_add_exactly(struct bfc_pool *pool, uint64_t bytes, bfc_addr *start);
void regions_forget(struct bfc_pool *pool, bool release);

#endif
