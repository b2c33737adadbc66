/*
 * Plans: which pages a block that fits nowhere gets, and at which addresses. Called under the lock,
 * with growth_lock. Sizes in bytes.
 */
#ifndef BFC_POOL_PLAN_H
#define BFC_POOL_PLAN_H

#include "pool/blocks/state.h"

struct page_plan {
    bfc_addr at;      /* where pages are mapped: first those of on_hand, then new ones */
    uint64_t moving;  /* bytes of the pages of on_hand, which victims_take has taken */
    uint64_t making;  /* bytes of the new pages */
    uint64_t page;    /* the size of each new page; the last one may be smaller */
    uint64_t missing; /* PLAN_NEEDS_ADDRESSES: how many bare addresses in a row are needed */
};

enum plan_result {
    PLAN_MADE,
    PLAN_NEEDS_ADDRESSES,
    PLAN_EXCEEDS_LIMIT,
    PLAN_NO_HOST_MEMORY,
};

/* Plans room for a request. `saving`: with as few new pages as possible, whatever the slack allows.
 * Unless the result is PLAN_MADE the table and the blocks are unchanged. */
enum plan_result plan_make(struct bfc_pool *pool, const struct request *request, bool saving,
                           struct page_plan *plan);

/* Plans pages for all of these bare addresses, whole granules of pages: ready pages of other
 * blocks, and new ones for the rest. */
enum plan_result plan_for(struct bfc_pool *pool, bfc_addr at, uint64_t bytes,
                          struct page_plan *plan);

/* As plan_for, with new pages of size `page` alone. */
enum plan_result plan_new(struct bfc_pool *pool, bfc_addr at, uint64_t bytes, uint64_t page,
                          struct page_plan *plan);

#endif
