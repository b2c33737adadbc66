/* Regions that are set apart for bfc_pool_allocate_at. Called under the lock. */
#ifndef BFC_POOL_APART_H
#define BFC_POOL_APART_H

#include "pool/blocks/state.h"

/* From now on all allocations may take from every region. False: none was set apart. */
bool apart_end(struct bfc_pool *pool);

/* With BFC_ALLOCATE_APART takes what is ready in regions that are set apart, which they stay. */
bool apart_spare(struct bfc_pool *pool, const struct request *request);

/* Takes from regions that were ever set apart whatever the policy says of them: without a plan
 * their memory would have become regions that it lets the request have. O(their blocks), as a rule.
 */
bool apart_take(struct bfc_pool *pool, const struct request *request);

#endif
