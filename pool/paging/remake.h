/*
 * Large pages that a much smaller block is about to lie in, and would keep from moving as long as
 * it lives, go back to the device first, and small ones are made in their place. A byte's page
 * only gets smaller by that, so each is remade a few times at most.
 */
#ifndef BFC_POOL_REMAKE_H
#define BFC_POOL_REMAKE_H

#include "pool/blocks/state.h"

/*
 * While allocations are watched (policy_watch): does so for this one, where the free block that it
 * would be handed has such pages. Called under the lock, which is dropped meanwhile. False: it may
 * not, since the request is BFC_ALLOCATE_HIT_ONLY. What the device refuses makes the addresses
 * bare, and ends the watch.
 */
bool remake_before(struct bfc_pool *pool, const struct request *request);

#endif
