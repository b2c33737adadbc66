/* Records of regions: adding one to the pool's structures and removing it. Under the lock. */
#ifndef BFC_POOL_REGION_H
#define BFC_POOL_REGION_H

#include "pool/blocks/state.h"

/*
 * Notes a region, of which `region` has start, size and shared. Returns the record of the one block
 * that fills it, in no list, count or state yet; or 0: the host has no memory for it.
 */
block_index region_attach(struct bfc_pool *pool, const struct region *region, enum block_zone zone);

/* Forgets a region that is one block, which is in no list and no count. */
void region_detach(struct bfc_pool *pool, region_index r);

#endif
