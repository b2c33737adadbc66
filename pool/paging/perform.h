/* Carries plans out: makes the calls of struct bfc_page_calls without the lock, and updates the
 * pool. Called with growth_lock. */
#ifndef BFC_POOL_PERFORM_H
#define BFC_POOL_PERFORM_H

#include "pool/paging/page_plan.h"

/*
 * Carries out a plan that was made; drops the lock meanwhile. BFC_OK: as planned.
 * BFC_OUT_OF_MEMORY: the device refused new pages, and nothing has moved. BFC_UPSTREAM_FAILED,
 * BFC_NO_HOST_MEMORY: pages may have moved or gone back, and the pool's records show it.
 */
enum bfc_status perform_plan(struct bfc_pool *pool, const struct page_plan *plan);

/* Gives the ready pages of on_hand back to the device; drops the lock meanwhile. Pages that cannot
 * be unmapped stay in use. Returns how many bytes went. */
uint64_t perform_release(struct bfc_pool *pool);

/* Tries again to unmap the lost pages and give them back; drops the lock meanwhile. Returns how
 * many bytes went. */
uint64_t perform_recover(struct bfc_pool *pool);

/* Gives every page and every reservation back, without a lock, at the end of the pool. */
void perform_end(struct bfc_pool *pool);

#endif
