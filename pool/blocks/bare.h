/* Addresses lose their pages or get some: ready blocks become bare, and bare blocks become ready.
 * Called under the lock. */
#ifndef BFC_POOL_BARE_H
#define BFC_POOL_BARE_H

#include "pool/blocks/state.h"

/* Makes room for the records of so many calls of bare_strip or bare_back, counting a range over
 * several regions once for each; false: the host has no memory for them. */
bool bare_prepare_cuts(struct bfc_pool *pool, uint64_t cuts);

/* Adds a region that is one bare block. False: the host has no memory for its records. */
bool bare_add_region(struct bfc_pool *pool, bfc_addr start, uint64_t bytes, enum block_zone zone);

/* Makes ready addresses bare. The range may span ready blocks of adjacent regions;
 * bare_prepare_cuts must have made room. */
void bare_strip(struct bfc_pool *pool, bfc_addr start, uint64_t bytes);

/* Makes bare addresses ready, in the same way. */
void bare_back(struct bfc_pool *pool, bfc_addr start, uint64_t bytes);

#endif
