/*
 * Serves requests by new or moved pages, and gives pages back. All functions are called under the
 * pool's lock, and drop it around calls of the upstream. Sizes are in bytes. Functions whose caller
 * must hold pool->growth_lock say so; the others take that lock themselves.
 */
#ifndef BFC_POOL_GROW_H
#define BFC_POOL_GROW_H

#include "pool/blocks/pool_state.h"

/* Takes growth_lock, and drops the pool's lock while it waits for growth_lock. Only the holder of
 * growth_lock makes, moves or gives back pages. */
void pages_lock_growth(struct bfc_pool *pool);

/* Takes growth_lock. If bfc_pool_freeze_pages has forbidden to change pages, first has the
 * upstream's function `wake` (pool/pages.h) allow it again. BFC_ASLEEP: `wake` has failed, and
 * pages still must not change. Takes growth_lock in any case. */
enum bfc_status pages_lock_awake(struct bfc_pool *pool);

/* growth_begin takes growth_lock, growth_end releases it. Between the two calls the pool grows for
 * the request, and passes pool->ask to the functions of the upstream. growth_end copies the error
 * code that the upstream has left in pool->ask to the request's result. */
void growth_begin(struct bfc_pool *pool, const struct request *request);
void growth_end(struct bfc_pool *pool, const struct request *request);

/* Asks the upstream whether the pool may make and move pages now. Drops the pool's lock during the
 * question. */
bool pages_may_grow(struct bfc_pool *pool);

/* Serves the request by new or moved pages. False: `*status` says why not: BFC_OUT_OF_MEMORY if the
 * limit or the device does not allow so much, BFC_UPSTREAM_FAILED if a call failed for another
 * reason, even when repeated with as few new pages as possible, BFC_NO_HOST_MEMORY or
 * BFC_ASLEEP. */
bool pages_grow(struct bfc_pool *pool, const struct request *request, enum bfc_status *status);

/* Reserves at least `bytes` bytes of addresses, without pages, as a new region for a plan, and sets
 * `*region`. The caller holds growth_lock. BFC_UPSTREAM_FAILED: the device refuses. */
enum bfc_status pages_add_planned(struct bfc_pool *pool, uint64_t bytes, region_index *region);

/* Puts pages behind all of a region that is set apart: ready pages of other blocks, and new ones
 * for the rest. The caller holds growth_lock. Returns what pages_grow may set `*status` to; after a
 * failure a part of the region may have pages. */
enum bfc_status pages_back(struct bfc_pool *pool, region_index region);

/* Gives ready pages back until at least `bytes` bytes have gone back or no ready page is left;
 * returns how many bytes went back. Pages of regions that are set apart go last, and only with
 * `anywhere`. */
uint64_t pages_trim(struct bfc_pool *pool, uint64_t bytes, bool anywhere);

/* Gives back the pages that all calls of this function, for at least idle_ns nanoseconds, have
 * found ready; `now` is the time of this call. Returns how many bytes went back. */
uint64_t pages_trim_idle(struct bfc_pool *pool, uint64_t idle_ns, uint64_t now);

/*
 * To be called before an allocation while the pool looks for pages that are too large
 * (rules.watched is not 0). In the free block that the request would get, replaces such pages by
 * smaller ones: a small block would keep a large page from moving for as long as the block lives. A
 * page gets smaller each time, so the same memory is remade only a few times. False: pages would
 * have to be replaced, but BFC_ALLOCATE_HIT_ONLY forbids it. If the device refuses the new pages,
 * the addresses stay without pages, and rules.watched becomes 0.
 */
bool remake_before(struct bfc_pool *pool, const struct request *request);

#endif
