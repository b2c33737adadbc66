/*
 * Carrying plans out: the calls of the device, without the lock, and what they came to. With the
 * pages' turn.
 */
#ifndef BFC_POOL_PERFORM_H
#define BFC_POOL_PERFORM_H

#include "pool/paging/page_plan.h"

/*
 * Carries out a plan that was made; drops the lock meanwhile. BFC_OK: as planned.
 * BFC_OUT_OF_MEMORY: the device refused new pages; nothing has moved. BFC_UPSTREAM_FAILED,
 * BFC_NO_HOST_MEMORY: pages may have moved or gone back; none is left out of the account.
 */
enum bfc_status perform_plan(struct bfc_pool *pool, const struct page_plan *plan);

/* Gives the pages on hand, which victims_take has taken, back to the device; drops the lock
 * meanwhile. Those that cannot be unmapped are put back. Returns how many bytes went. */
uint64_t perform_release(struct bfc_pool *pool);

/* Tries again to give back what could not be unmapped, if there is such a page; drops the lock
 * meanwhile. Returns how many bytes went. */
uint64_t perform_recover(struct bfc_pool *pool);

/* Gives every page and every reservation back, without a lock: the pool ends. */
void perform_end(struct bfc_pool *pool);

#endif
