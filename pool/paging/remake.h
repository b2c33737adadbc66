/*
 * A small block in a large page would keep the page from moving as long as the block lives. So
 * before a block is handed out in much larger pages, these go back to the device, and small ones
 * are made in their place. Pages only get smaller by that, so none is remade more than a few times.
 */
#ifndef BFC_POOL_REMAKE_H
#define BFC_POOL_REMAKE_H

#include "pool/blocks/state.h"

/*
 * Remakes pages that are too large for the request in the free block that the request would get.
 * Called while rules.watched is not 0, under the lock, which is dropped meanwhile. False: pages
 * have to be remade, but the request is BFC_ALLOCATE_HIT_ONLY. Where the device refuses the new
 * pages the addresses become bare, and rules.watched becomes 0.
 */
bool remake_before(struct bfc_pool *pool, const struct request *request);

#endif
