/* Adds regions, grows the pool, and gives regions back. Called under the lock. */
#ifndef BFC_POOL_REGIONS_H
#define BFC_POOL_REGIONS_H

#include "pool/blocks/state.h"

enum bfc_status region_add(struct bfc_pool *pool, bfc_addr start, uint64_t size,
                           enum block_zone zone);
/* Returns the ready block that fills the region. 0: there is none, or the region is held or of
 * pages. */
block_index region_idle_block(const struct bfc_pool *pool, const struct region *region);
/* Gives an idle region back; drops the lock meanwhile. Returns the region's size; 0: the upstream
 * did not take it, and the region is the pool's as before. */
uint64_t region_release(struct bfc_pool *pool, region_index r);
/* Gives idle regions back, the largest first, until at least `bytes` have gone or the upstream
 * refuses one; drops the lock meanwhile. Returns how many bytes went. */
uint64_t regions_release(struct bfc_pool *pool, uint64_t bytes);
uint64_t regions_releasable(const struct bfc_pool *pool);
/* Returns the first block of a region without pages in which no block is live or awaited; otherwise
 * 0. */
block_index region_freed_block(const struct bfc_pool *pool, const struct region *region);
/* Grows the pool for the request, and serves the request. Grows by pages where the pool has them;
 * by a region where it has none, or where one of the page calls fails for another reason than a
 * lack of memory. */
bool regions_grow(struct bfc_pool *pool, const struct request *request, enum bfc_status *status);
/* Adds one region of exactly so many bytes, if the limit and the device allow it. The caller holds
 * growth_lock; drops the lock meanwhile. */
enum bfc_status regions_add_exactly(struct bfc_pool *pool, uint64_t bytes, bfc_addr *start);
void regions_forget(struct bfc_pool *pool, bool release);

#endif
