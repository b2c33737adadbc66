/*
 * The lists of pending and deferred blocks. Called under the lock.
 *
 * Pending blocks are in the order of their fences, so the complete ones are at the front of the
 * list. Blocks are usually freed in the order of their fences, so fences_add is O(1); otherwise it
 * is O(pending blocks with a higher fence).
 */
#ifndef BFC_POOL_PENDING_H
#define BFC_POOL_PENDING_H

#include "pool/blocks/state.h"

void fences_add(struct bfc_pool *pool, block_index b, bfc_fence fence);
void fences_remove(struct bfc_pool *pool, block_index b);
void deferred_add(struct bfc_pool *pool, block_index b);
void deferred_remove(struct bfc_pool *pool, block_index b);

#endif
