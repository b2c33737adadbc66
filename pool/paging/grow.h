/*
 * Serving a request by new or moved pages, and giving pages back. Called under the lock, which is
 * dropped meanwhile.
 */
#ifndef BFC_POOL_GROW_H
#define BFC_POOL_GROW_H

#include "pool/blocks/internal.h"

/* False: *status says why, BFC_OUT_OF_MEMORY if neither the limit nor the device allow so much,
 * BFC_UPSTREAM_FAILED if a call was refused for another reason, and with fewer new pages again. */
bool pages_grow(struct bfc_pool *pool, const struct request *request, enum bfc_status *status);

/* Gives ready pages back until `bytes` went, or there are none; returns how many bytes went. */
uint64_t pages_trim(struct bfc_pool *pool, uint64_t bytes);

/* Gives those back that were ready at all looks for idle_ns. */
uint64_t pages_trim_idle(struct bfc_pool *pool, uint64_t idle_ns, uint64_t now);

#endif
