/*
 * Plans: where a block that fits nowhere gets its pages from, and behind which addresses they go.
 * Under the lock, with the pages' turn.
 */
#ifndef BFC_POOL_PLAN_H
#define BFC_POOL_PLAN_H

#include "pool/blocks/state.h"

struct page_plan {
    bfc_addr at;      /* bare addresses that get pages: first those on hand, then new ones */
    uint64_t moving;  /* bytes of the pages on hand, which victims_take has taken */
    uint64_t making;  /* bytes of the new pages... */
    uint64_t page;    /* ...each of which has so many, but the last one */
    uint64_t missing; /* PLAN_NEEDS_ADDRESSES: at least so many bare addresses in a row */
};

enum plan_result {
    PLAN_MADE,
    PLAN_NEEDS_ADDRESSES,
    PLAN_EXCEEDS_LIMIT,
    PLAN_NO_HOST_MEMORY,
};

/* `saving`: as few new pages as possible, whatever the slack allows; the device has refused some.
 * Unless it is PLAN_MADE nothing has changed. */
enum plan_result plan_make(struct bfc_pool *pool, const struct request *request, bool saving,
                           struct page_plan *plan);

/* The same for these bare addresses, whole granules of pages: all of them get pages, ready ones of
 * other blocks as far as there are any. */
enum plan_result plan_for(struct bfc_pool *pool, bfc_addr at, uint64_t bytes,
                          struct page_plan *plan);

/* The same with new pages of this size alone. */
enum plan_result plan_new(struct bfc_pool *pool, bfc_addr at, uint64_t bytes, uint64_t page,
                          struct page_plan *plan);

#endif
