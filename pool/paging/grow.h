/*
 * Serving a request by new or moved pages, and giving pages back. Called under the lock, which is
 * dropped meanwhile.
 */
#ifndef BFC_POOL_GROW_H
#define BFC_POOL_GROW_H

#include "pool/blocks/state.h"

/* Takes growth_lock, and drops the pool's lock meanwhile. */
void pages_lock_growth(struct bfc_pool *pool);

/* Around what makes the pool grow for a request: take growth_lock, and release it. Between the two
 * the upstream gets the request's bfc_ask; growth_end puts the error of that into the block info.
 */
void growth_begin(struct bfc_pool *pool, const struct request *request);
void growth_end(struct bfc_pool *pool, const struct request *request);

/* False: *status says why, BFC_OUT_OF_MEMORY if neither the limit nor the device allow so much,
 * BFC_UPSTREAM_FAILED if a call was refused for another reason, and with fewer new pages again. */
bool pages_grow(struct bfc_pool *pool, const struct request *request, enum bfc_status *status);

/*
 * Reserves addresses for at least so many bytes, which no pages are behind yet, as a region of its
 * own that is `planned`. BFC_UPSTREAM_FAILED: the device refuses.
 */
enum bfc_status pages_add_planned(struct bfc_pool *pool, uint64_t bytes, region_index *region);

/*
 * Gets pages behind all of a region that is set apart: ready ones of others, and new ones. With the
 * pages' turn. Results as pages_grow's; a part may have got some.
 */
enum bfc_status pages_back(struct bfc_pool *pool, region_index region);

/* Gives ready pages back until `bytes` went, or there are none; returns how many bytes went. */
uint64_t pages_trim(struct bfc_pool *pool, uint64_t bytes);

/* The same, but none of regions that are set apart; pages_trim takes those last. */
uint64_t pages_trim_unplanned(struct bfc_pool *pool, uint64_t bytes);

/* Gives those back that were ready at all looks for idle_ns. */
uint64_t pages_trim_idle(struct bfc_pool *pool, uint64_t idle_ns, uint64_t now);

#endif
