/* Adding and removing regions, and finding the block that holds an address. Called under the pool's
 * lock. */
#ifndef BFC_POOL_REGION_H
#define BFC_POOL_REGION_H

#include "pool/blocks/pool_state.h"

/*
 * Adds a region with the fields of `region`, of which `held` and `apart` must be false, and makes
 * its head, the record before the first block. Returns the one block that fills the region; the
 * caller sets its state and adds it to lists and counters. 0: the host has no memory for the
 * records.
 */
block_index region_attach(struct bfc_pool *pool, const struct region *region, enum block_zone zone);

/* Removes a region that consists of one block, which the caller has taken out of lists and
 * counters. */
void region_detach(struct bfc_pool *pool, region_index r);

/* Returns the block that holds the address; 0: no region holds it. O(log blocks), or O(1) for the
 * start of a live block. */
block_index find_holding(const struct bfc_pool *pool, bfc_addr address);

/* A caller of bare_strip or bare_back must first reserve this many block records (slots_prepare)
 * for each region that the range spans. */
#define BARE_RECORDS 2

/* Adds a region that is one block without pages. False: the host has no memory for the records. */
bool bare_add_region(struct bfc_pool *pool, bfc_addr start, uint64_t bytes, enum block_zone zone);

/* Turns ready blocks in the range into bare ones, that is, addresses without pages, and takes their
 * bytes out of the pool's counts. The range may span ready blocks of adjacent regions. The caller
 * has reserved BARE_RECORDS with slots_prepare for each of these regions. */
void bare_strip(struct bfc_pool *pool, bfc_addr start, uint64_t bytes);

/* Makes a bare range ready again, because pages have been mapped there. The range may span bare
 * blocks of adjacent regions. The caller has reserved BARE_RECORDS with slots_prepare for each
 * region of the range. */
void bare_back(struct bfc_pool *pool, bfc_addr start, uint64_t bytes);

#endif
