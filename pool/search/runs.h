/* Finds runs of neighbouring free blocks that together could serve a request. Called under the
 * lock. */
#ifndef BFC_POOL_RUNS_H
#define BFC_POOL_RUNS_H

#include "pool/blocks/pool_state.h"

/*
 * Of all runs of neighbouring ready and pending blocks that together have room for `granules`,
 * finds the one that is wholly ready the soonest: the one whose highest fence is the lowest. A run
 * that has room without waiting for any fence does not count. Returns the run's first block, and
 * sets `*fence` to its highest fence. If there is no such run, returns 0 and sets `*fence` to
 * UINT64_MAX. `for_reuse`: the run is to be handed out while it is pending, so runs in regions that
 * are shared or set apart do not count. Looks at every pending block.
 */
block_index runs_find(const struct bfc_pool *pool, uint64_t granules, bool for_reuse,
                      bfc_fence *fence);

/* Whether all blocks of b's region are ready or pending, and the pool would rather grow than cut
 * this many granules from the region. Always false in a pool with pages. */
bool runs_keep_region(struct bfc_pool *pool, block_index b, uint64_t granules);

#endif
