#ifndef BFC_POOL_FIND_H
#define BFC_POOL_FIND_H

#include "pool/blocks/state.h"

/* Returns the block that holds the address; 0: no region does. O(log blocks); O(1) for the start of
 * a live block. Called under the lock. */
block_index find_holding(const struct bfc_pool *pool, bfc_addr address);

#endif
