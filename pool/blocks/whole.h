/*
 * Blocks that fill a large region are in bins of their own (`whole`), because a small block in such
 * a region would keep all of it from the device's other users. A request takes from these bins if
 * it needs a large part of a region, or if the pool cannot grow for it at little cost
 * (pool/policy/growth.h).
 *
 * Called under the lock.
 */
#ifndef BFC_POOL_WHOLE_H
#define BFC_POOL_WHOLE_H

#include "pool/blocks/pool_state.h"

/* A request of at most 1 / WHOLE_PART of the least large region takes from other bins first. */
#define WHOLE_PART 8

/* Moves block b to the bins `whole` if b is ready and fills a large region that is not set apart.
 * Does nothing in a pool with pages, where memory goes back by the page. */
void whole_put(struct bfc_pool *pool, block_index b);

/* Moves block b back to the bins of other ready blocks. Call this before b is cut. */
void whole_open(struct bfc_pool *pool, block_index b);

/* Sets plain_most, which is 0 unless `plain`, and picks_by_rules: the rules that depend on whether
 * a large region is wholly free. */
void whole_set_rules(struct bfc_pool *pool, bool plain);

#endif
