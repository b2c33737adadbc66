/*
 * A ready block that fills a large region is in separate bins (`whole`), because a small block cut
 * from it would keep the whole region from the device's other users. A request takes a block from
 * these bins if it needs a large part of the block, or if the pool cannot instead grow for the
 * request at little cost (pool/policy/growth.h).
 *
 * Called under the lock.
 */
#ifndef BFC_POOL_WHOLE_H
#define BFC_POOL_WHOLE_H

#include "pool/blocks/pool_state.h"

/* A request of at most 1 / WHOLE_PART of the smallest large region takes a block that does not fill
 * a large region, if a quick search finds one. */
#define WHOLE_PART 8

/* Moves block b to the bins `whole` if it is ready and fills a large region that is not set apart,
 * else does nothing. It also does nothing in a pool with pages, because there a block that is cut
 * from the region keeps only its own pages from the device. */
void whole_put(struct bfc_pool *pool, block_index b);

/* Moves block b from the bins `whole` to the bins of other ready blocks. Call this before b is
 * split. */
void whole_open(struct bfc_pool *pool, block_index b);

/* Recomputes the rules that depend on whether a large region is wholly free: picks_by_rules, and
 * plain_most. `plain`: whether the other rules allow the fast path of allocations; if not,
 * plain_most becomes 0. */
void whole_set_rules(struct bfc_pool *pool, bool plain);

#endif
