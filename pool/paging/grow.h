/*
 * Serves a request by new or moved pages, and gives pages back. Called under the lock, which is
 * dropped meanwhile. Sizes in bytes. "With growth_lock": the caller holds pool->growth_lock, and so
 * owns the pages; the other functions take it themselves.
 */
#ifndef BFC_POOL_GROW_H
#define BFC_POOL_GROW_H

#include "pool/blocks/pool_state.h"

/* Takes growth_lock; drops the pool's lock meanwhile. */
void pages_lock_growth(struct bfc_pool *pool);

/* Does what pages_lock_growth does, but wakes frozen pages first (pool/pages.h). BFC_ASLEEP: waking
 * them failed, and they are still frozen; growth_lock is taken all the same. */
enum bfc_status pages_lock_awake(struct bfc_pool *pool);

/* growth_begin and growth_end take and release growth_lock around what makes the pool grow for a
 * request. Between the two calls the upstream gets the request's struct bfc_ask, whose error
 * growth_end copies to the request's block info. */
void growth_begin(struct bfc_pool *pool, const struct request *request);
void growth_end(struct bfc_pool *pool, const struct request *request);

/* Whether the upstream lets the pool make and move pages now. Drops the pool's lock meanwhile. */
bool pages_may_grow(struct bfc_pool *pool);

/* Makes the pool grow for the request. False: *status says why not: BFC_OUT_OF_MEMORY if the limit
 * or the device does not allow so much, BFC_UPSTREAM_FAILED if a call failed for another reason,
 * also with as few new pages as possible, BFC_NO_HOST_MEMORY or BFC_ASLEEP. */
bool pages_grow(struct bfc_pool *pool, const struct request *request, enum bfc_status *status);

/* Reserves at least `bytes` of addresses, without pages, as a new region that is `planned`. With
 * growth_lock. BFC_UPSTREAM_FAILED: the device refuses. */
enum bfc_status pages_add_planned(struct bfc_pool *pool, uint64_t bytes, region_index *region);

/* Puts pages behind all of a region that is set apart: ready pages of other blocks, and new ones.
 * With growth_lock. Results as those of pages_grow; after a failure a part may have pages. */
enum bfc_status pages_back(struct bfc_pool *pool, region_index region);

/* Gives ready pages back until `bytes` have gone or no ready page is left; returns how many bytes
 * have gone. Pages of regions that are set apart go last, and only with `anywhere`. */
uint64_t pages_trim(struct bfc_pool *pool, uint64_t bytes, bool anywhere);

/* Gives back the pages that each call of this function in the last idle_ns has found ready. */
uint64_t pages_trim_idle(struct bfc_pool *pool, uint64_t idle_ns, uint64_t now);

/*
 * Remakes pages that are too large for the request, in the free block that the request would get: a
 * small block would keep a large page from moving for as long as the block lives. Pages only get
 * smaller that way, so none is remade more than a few times. Called while rules.watched is not 0.
 * False: pages would have to be remade, but with BFC_ALLOCATE_HIT_ONLY they may not be. If the
 * device refuses the new pages, the addresses are left without pages, and rules.watched becomes 0.
 */
bool remake_before(struct bfc_pool *pool, const struct request *request);

#endif
