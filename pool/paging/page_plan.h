/*
 * Plans which pages a new block gets for which no free block is large enough, and at which
 * addresses. Called under the lock; the caller holds growth_lock. Sizes are in bytes.
 */
#ifndef BFC_POOL_PLAN_H
#define BFC_POOL_PLAN_H

#include "pool/blocks/pool_state.h"

struct page_plan {
    /* the address from which on pages are mapped: first those that move (the array on_hand), then
     * new ones */
    bfc_addr at;
    uint64_t moving; /* bytes of the pages that move; these pages are in the array on_hand */
    uint64_t making; /* bytes of the new pages */
    /* how many of the new bytes, from the first on, get pages for this block alone; no other block
     * can then keep these pages from moving */
    uint64_t own;
    /* the size of each new page; the last page, and the last one of the `own` bytes, may be
     * smaller */
    uint64_t page;
    /* set if plan_make returns BFC_OUT_OF_MEMORY: how many bytes of contiguous addresses without
     * pages the request needs; 0: memory is lacking, not addresses */
    uint64_t missing;
};

/* Plans pages for a request. `saving`: with as few new pages as possible, even if the slack allows
 * more. BFC_OUT_OF_MEMORY: the limit or the addresses do not suffice. BFC_NO_HOST_MEMORY is
 * possible too. With BFC_OK, the pages that will move have been removed from the page table, and
 * their addresses are bare; otherwise neither the table nor a block has changed. */
enum bfc_status plan_make(struct bfc_pool *pool, const struct request *request, bool saving,
                          struct page_plan *plan);

/* Plans pages for a whole range of bare addresses, whose size is a multiple of the smallest page:
 * ready pages of other blocks, and new ones for the rest. Returns what plan_make may return. */
enum bfc_status plan_for(struct bfc_pool *pool, bfc_addr at, uint64_t bytes,
                         struct page_plan *plan);

/* Plans new pages, each of `page` bytes, for a whole range of bare addresses; the last page may be
 * smaller. Moves no pages there. */
enum bfc_status plan_new(struct bfc_pool *pool, bfc_addr at, uint64_t bytes, uint64_t page,
                         struct page_plan *plan);

/* ---- functions that carry plans out (perform.c): they call the upstream's functions for pages
 * without holding the pool's lock ---- */

/*
 * Carries out a plan, and drops the lock meanwhile. BFC_OK: all was done. BFC_OUT_OF_MEMORY: the
 * device refused new pages, and no page has moved. BFC_UPSTREAM_FAILED, BFC_NO_HOST_MEMORY: some
 * pages may have moved or gone back to the device; the pool's records are right in any case.
 */
enum bfc_status perform_plan(struct bfc_pool *pool, const struct page_plan *plan);

/* Gives the pages of the array on_hand, which are ready, back to the device, and drops the lock
 * meanwhile. Pages that cannot be unmapped stay in use. Returns how many bytes went back. */
uint64_t perform_release(struct bfc_pool *pool);

/* Tries again to unmap the pages whose unmapping has failed (lost pages), and gives them back;
 * drops the lock meanwhile. Returns how many bytes went back. */
uint64_t perform_recover(struct bfc_pool *pool);

/* Gives all pages and all reservations of addresses back, without taking a lock. For the end of the
 * pool. */
void perform_end(struct bfc_pool *pool);

#endif
