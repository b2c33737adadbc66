/* The state of a pool with pages (pool/pages.h). Called under the lock. */
#ifndef BFC_POOL_PAGING_H
#define BFC_POOL_PAGING_H

#include "base/numbers.h"
#include "pool/blocks/state.h"
#include "pool/structures/page_table.h"

/*
 * Invariants (checked by bfc_pool_check), with those of state.h:
 *
 * - A region that is `paged` is a reservation of addresses, of which each byte has a page or is
 *   bare; other regions come from the upstream's `reserve`.
 * - A bare block has no page behind it, except lost ones; it is in the list of bare blocks, and in
 *   the treap of bare blocks by size.
 * - Any other block of a paged region has pages behind all of it. `reserved` is the sum of the
 *   pages that are not lost and of the regions that are not paged.
 * - Pages do not overlap, and no two neighbours are both bare.
 *
 * The table does not have the pages that victims_take took out, whose addresses are bare.
 */
struct paging {
    struct bfc_page_calls calls;
    struct page_table table;
    struct page_array on_hand; /* pages being moved, made or given back, by the growth_lock's holder
                                */
    block_index bare;          /* list of bare blocks, the last one that became bare first */
    block_index bare_sorted;   /* treap of bare blocks (sorted.h) */
    uint64_t addresses;        /* bytes reserved */
    uint64_t moving;           /* bytes of pages that victims_take took; not in `reserved` */
    uint32_t lost;             /* number of pages that are mapped but unusable */
    uint32_t looks;            /* number of calls of bfc_pool_trim_idle */
    uint64_t created, moved, released, made_calls; /* as in struct bfc_page_stats */
    uint64_t moved_to_grow;                        /* bytes that moved to serve a request */
    uint64_t step_most; /* bytes of the largest step of growth, lowered when the device refuses one
                         */
};

/* Rounds up to whole granules of pages. */
static inline uint64_t round_to_pages(const struct bfc_pool *pool, uint64_t bytes) {
    uint64_t granule = pool->paging->calls.granule;
    return bfc_add_saturating(bytes, granule - 1) & ~(granule - 1);
}

/* Adds block b to the list and the treap of bare blocks. */
static inline void bare_list(struct bfc_pool *pool, block_index b) {
    struct block_detail *details = pool->details;
    struct paging *paging = pool->paging;
    details[b].older = paging->bare;
    details[b].newer = 0;
    details[paging->bare].newer = b; /* a write to record 0 is harmless */
    paging->bare = b;
    sorted_insert(&paging->bare_sorted, pool->blocks, b);
}

static inline void bare_unlist(struct bfc_pool *pool, block_index b) {
    struct block_detail *details = pool->details;
    block_index older = details[b].older, newer = details[b].newer;
    details[older].newer = newer;
    *(newer ? &details[newer].older : &pool->paging->bare) = older;
    sorted_remove(&pool->paging->bare_sorted, pool->blocks, b);
}

/* Puts `to`, which is a copy of `from`, in the places of `from`. */
static inline void bare_replace(struct bfc_pool *pool, block_index from, block_index to) {
    struct block_detail *details = pool->details;
    block_index older = details[to].older, newer = details[to].newer;
    details[older].newer = to;
    *(newer ? &details[newer].older : &pool->paging->bare) = to;
    sorted_replace(&pool->paging->bare_sorted, pool->blocks, from, to);
}

#endif
