/* Finds runs of neighbouring free blocks. Called under the lock. */
#ifndef BFC_POOL_RUNS_H
#define BFC_POOL_RUNS_H

#include "pool/blocks/pool_state.h"

/*
 * Of all runs of neighbouring ready and pending blocks that have room for `granules`, finds the one
 * whose highest fence is the lowest. A run that has room without any wait does not count. Returns
 * the run's first block, and its highest fence in `*fence`; 0, and UINT64_MAX: there is no such
 * run. With `for_reuse`, regions that are shared or set apart do not count. Looks at every pending
 * block.
 */
block_index runs_find(const struct bfc_pool *pool, uint64_t granules, bool for_reuse,
                      bfc_fence *fence);

/* Returns true if all blocks of b's region are ready or pending, and the pool prefers growing to
 * cutting this many granules from that region. Always false in a pool with pages. */
bool runs_keep_region(struct bfc_pool *pool, block_index b, uint64_t granules);

#endif
