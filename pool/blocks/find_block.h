/* Finds the block that holds an address. Called under the lock. */
#ifndef BFC_POOL_FIND_H
#define BFC_POOL_FIND_H

#include "pool/blocks/state.h"

/* 0: it lies in no region. O(log blocks); O(1) for the start of a live block. */
block_index find_holding(const struct bfc_pool *pool, bfc_addr address);

#endif
