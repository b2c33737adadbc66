/*
 * The lists of pending and deferred blocks. Called under the lock.
 *
 * Pending blocks stand in the order of their fences, so those that are complete are at the front of
 * the list. Fences usually come in order, so adding a block is O(1); out of order it is O(pending
 * blocks with a higher fence).
 */
#ifndef BFC_POOL_PENDING_H
#define BFC_POOL_PENDING_H

#include "pool/blocks/state.h"

void fences_add(struct bfc_pool *pool, block_index b, bfc_fence fence);
void fences_remove(struct bfc_pool *pool, block_index b);
void deferred_add(struct bfc_pool *pool, block_index b);
void deferred_remove(struct bfc_pool *pool, block_index b);

#endif
