/* Regions that are set apart for bfc_pool_allocate_at. Called under the lock. */
#ifndef BFC_POOL_APART_H
#define BFC_POOL_APART_H

#include "pool/blocks/state.h"

/* Opens every region to all allocations. False: no region was set apart. */
bool apart_end(struct bfc_pool *pool);

/* With BFC_ALLOCATE_APART, takes the request from a ready block of the regions that are set apart,
 * which they stay. False: no such block has room. */
bool apart_spare(struct bfc_pool *pool, const struct request *request);

/* Takes the request from a planned region even if the policy refuses its blocks. Without a plan,
 * that memory would be in regions whose blocks the policy accepts. Looks at all blocks of these
 * regions. */
bool apart_take(struct bfc_pool *pool, const struct request *request);

#endif
