/* Records of regions, and which block holds an address. Called under the lock. */
#ifndef BFC_POOL_REGION_H
#define BFC_POOL_REGION_H

#include "pool/blocks/pool_state.h"

/*
 * Adds a region with the fields of `region`, where `held` and `apart` must not be set, and with a
 * head of its own. Returns the record of the one block that fills it, which is in no list and no
 * count, and has no state yet; or 0: the host has no memory for it.
 */
block_index region_attach(struct bfc_pool *pool, const struct region *region, enum block_zone zone);

/* Removes a region that is one block, which is in no list and no count. */
void region_detach(struct bfc_pool *pool, region_index r);

/* Returns the block that holds the address; 0: no region does. O(log blocks); O(1) for the start of
 * a live block. */
block_index find_holding(const struct bfc_pool *pool, bfc_addr address);

/* The records that one call of bare_strip or bare_back may need, for slots_prepare; a range over
 * several regions counts once for each. */
#define BARE_RECORDS 2

/* Adds a region that is one bare block. False: the host has no memory for its records. */
bool bare_add_region(struct bfc_pool *pool, bfc_addr start, uint64_t bytes, enum block_zone zone);

/* Makes ready addresses bare. The range may span ready blocks of adjacent regions;
 * slots_prepare must have made room. */
void bare_strip(struct bfc_pool *pool, bfc_addr start, uint64_t bytes);

/* Makes bare addresses ready, under the same conditions as bare_strip. */
void bare_back(struct bfc_pool *pool, bfc_addr start, uint64_t bytes);

#endif
