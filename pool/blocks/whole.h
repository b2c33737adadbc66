/*
 * Large regions that are wholly free: a small block in one of them would keep all of it from the
 * device's other users, so their blocks are in bins of their own (`whole`), where a request looks
 * when it needs most of one, or when the pool cannot grow for it (pool/policy/growth.h).
 *
 * Called under the lock.
 */
#ifndef BFC_POOL_WHOLE_H
#define BFC_POOL_WHOLE_H

#include "pool/blocks/state.h"

/* What needs less than this part of such a region does not look there first. */
#define WHOLE_PART 8

/* Block b moves to those bins if it is ready, and all of a large region that any allocation may
 * take from. Not in a pool with pages, where memory goes back by the page. */
void whole_put(struct bfc_pool *pool, block_index b);

/* Moves it back to the bins of other ready blocks, before it is cut. */
void whole_open(struct bfc_pool *pool, block_index b);

/* Sets those of the pool's rules that depend on whether a large region is wholly free: plain_most,
 * which is 0 unless `plain`, and picks_by_rules. */
void whole_set_rules(struct bfc_pool *pool, bool plain);

#endif
