/*
 * Plans: which pages a block gets for which there is no room, and at which addresses. Called under
 * the lock, with growth_lock. Sizes in bytes.
 */
#ifndef BFC_POOL_PLAN_H
#define BFC_POOL_PLAN_H

#include "pool/blocks/pool_state.h"

struct page_plan {
    bfc_addr at;     /* where pages are mapped: first those of on_hand, then new ones */
    uint64_t moving; /* bytes of the pages that move, which are in on_hand */
    uint64_t making; /* bytes of the new pages */
    uint64_t own;    /* one new page ends where the first `own` new bytes end (page_growth_own) */
    uint64_t page;   /* the size of each new page, unless it ends earlier */
    /* of a plan that failed with BFC_OUT_OF_MEMORY: how many bare bytes in a row the request needs;
     * 0: addresses are not what is lacking */
    uint64_t missing;
};

/* Plans room for a request. `saving`: with as few new pages as possible, whatever the slack allows.
 * BFC_OUT_OF_MEMORY: the limit or the addresses do not suffice; BFC_NO_HOST_MEMORY. Only with
 * BFC_OK have the table and the blocks changed. */
enum bfc_status plan_make(struct bfc_pool *pool, const struct request *request, bool saving,
                          struct page_plan *plan);

/* Plans pages for a whole range of bare addresses, a multiple of the granule: ready pages of other
 * blocks, and new ones for the rest. Results as those of plan_make. */
enum bfc_status plan_for(struct bfc_pool *pool, bfc_addr at, uint64_t bytes,
                         struct page_plan *plan);

/* Plans as plan_for does, but with new pages alone, each of `page` bytes. */
enum bfc_status plan_new(struct bfc_pool *pool, bfc_addr at, uint64_t bytes, uint64_t page,
                         struct page_plan *plan);

/* ---- perform.c carries plans out: it makes the calls of struct bfc_page_calls without the lock
 * ---- */

/*
 * Carries out a plan that was made; drops the lock meanwhile. BFC_OK: as planned.
 * BFC_OUT_OF_MEMORY: the device refused new pages, and nothing has moved. BFC_UPSTREAM_FAILED,
 * BFC_NO_HOST_MEMORY: pages may have moved or gone back, and the pool's records show it.
 */
enum bfc_status perform_plan(struct bfc_pool *pool, const struct page_plan *plan);

/* Gives the ready pages of on_hand back to the device; drops the lock meanwhile. Pages that cannot
 * be unmapped stay in use. Returns how many bytes went. */
uint64_t perform_release(struct bfc_pool *pool);

/* Tries again to unmap pages whose unmapping has failed (lost pages), and to give them back; drops
 * the lock meanwhile. Returns how many bytes have gone. */
uint64_t perform_recover(struct bfc_pool *pool);

/* Gives every page and every reservation back, without a lock, at the end of the pool. */
void perform_end(struct bfc_pool *pool);

#endif
