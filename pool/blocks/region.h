/* Records of regions. Called under the lock. */
#ifndef BFC_POOL_REGION_H
#define BFC_POOL_REGION_H

#include "pool/blocks/state.h"

/*
 * Adds a region with the start, size, shared, planned and paged of `region`. Returns the record of
 * the one block that fills it, which is in no list and no count, and has no state yet; or 0: the
 * host has no memory for it.
 */
block_index region_attach(struct bfc_pool *pool, const struct region *region, enum block_zone zone);

/* Removes a region that is one block, which is in no list and no count. */
void region_detach(struct bfc_pool *pool, region_index r);

#endif
