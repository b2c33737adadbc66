/* What an allocation tries when the device has refused a region. Called under the lock. */
#ifndef BFC_POOL_LAST_RESORTS_H
#define BFC_POOL_LAST_RESORTS_H

#include "pool/blocks/state.h"

/* Makes every awaited block ready that can be by now, and takes a free block for the request. Drops
 * the lock meanwhile. */
bool take_settled(struct bfc_pool *pool, const struct request *request);

/* Tries the last resorts of the policy. True: the request was served. `released`: the pool's
 * release_calls when the miss began. Drops the lock meanwhile; does nothing unless *status is
 * BFC_OUT_OF_MEMORY. */
bool last_resorts(struct bfc_pool *pool, const struct request *request, uint64_t released,
                  enum bfc_status *status);

#endif
