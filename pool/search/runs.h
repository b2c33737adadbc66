/* Finds runs of neighbouring free blocks. Called under the lock. */
#ifndef BFC_POOL_RUNS_H
#define BFC_POOL_RUNS_H

#include "pool/blocks/state.h"

/*
 * Finds a run of neighbouring ready and pending blocks of this many granules whose highest fence is
 * the lowest of all such runs; a run whose ready blocks suffice does not count. Returns its first
 * block, or 0; O(pending blocks). `for_reuse`: none of a shared region.
 */
block_index runs_find(const struct bfc_pool *pool, uint64_t granules, bool for_reuse,
                      bfc_fence *fence);

/* Does the pool grow rather than cut this many granules from the region of free block b, because
 * every block of that region is ready or pending? */
bool runs_keep_region(struct bfc_pool *pool, block_index b, uint64_t granules);

#endif
