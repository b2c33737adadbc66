/* The state of a pool with pages (pool/pages.h). The functions are called under the pool's lock. */
#ifndef BFC_POOL_PAGING_H
#define BFC_POOL_PAGING_H

#include "base/numbers.h"
#include "pool/blocks/pool_state.h"
#include "pool/structures/page_table.h"

/*
 * Invariants of a pool with pages, in addition to those of pool_state.h (checked by
 * bfc_pool_check):
 *
 * - A region that is `paged` is a reservation of addresses, of which each byte has a page or is
 *   bare. Other regions come from the upstream's `reserve`.
 * - A bare block has no page behind it, unless the page is lost: it can neither be used nor be
 *   unmapped.
 * - Any other block of a paged region has pages behind all of it. The counter `reserved` is the sum
 *   of the pages that are not lost and of the regions that are not paged.
 * - Pages do not overlap, and no two neighbouring blocks are both bare.
 *
 * The page table does not contain the pages that victims_take has removed to move them or give them
 * back; their addresses are bare.
 */
struct paging {
    struct bfc_page_calls calls;
    struct page_table table;
    /* the pages that the holder of growth_lock is moving, making or giving back */
    struct page_array on_hand;
    uint64_t addresses; /* bytes of addresses that are reserved */
    /* bytes of the pages that victims_take has removed from the table to move them; not part of
     * `reserved` */
    uint64_t moving;
    uint32_t lost; /* how many pages are mapped, but can neither be used nor unmapped */
    /* whether no page may be made, moved or given back (bfc_pool_freeze_pages); written under
     * growth_lock and the pool's lock together */
    bool frozen;
    /* how many calls of bfc_pool_trim_idle have examined the pages so far */
    uint32_t looks;
    /* counters of what was done with pages since the pool began; bfc_pool_page_stats copies them,
     * made_calls as `calls` */
    uint64_t created, moved, released, made_calls;
    uint64_t moved_to_grow; /* bytes of pages that were moved to serve requests */
    /* with BFC_PAGE_AUTO: bytes of the largest page that may be made now; UINT64_MAX: no bound */
    uint64_t page_bound;
    /* with BFC_PAGE_AUTO: whether free blocks between others have cost so much memory that the pool
     * bounds the size of pages; never reset */
    bool scattered;
    uint64_t steps; /* with BFC_PAGE_AUTO: how many plans were made that make new pages */
    /* the most bytes of pages that the pool makes beyond what a request needs; lowered when the
     * device refuses pages */
    uint64_t step_most;
};

/* Returns how many bytes the pool may add to `reserved` before it reaches the configured limit. */
static inline uint64_t room_below_limit(const struct bfc_pool *pool) {
    uint64_t moving = pool->paging ? pool->paging->moving : 0;
    uint64_t taken = pool->stats->reserved + pool->releasing + moving;
    return ROUND_DOWN(bfc_subtract_saturating(pool->config.limit, taken));
}

/* Whether this range of addresses holds a lost page, one that could not be unmapped. No other page
 * can be mapped there. */
static inline bool has_lost(const struct bfc_pool *pool, bfc_addr start, bfc_addr end) {
    const struct page_table *table = &pool->paging->table;
    uint32_t i = pool->paging->lost ? page_table_find(table, start) : table->pages.count;
    while (i < table->pages.count && !page_table_at(table, i)->lost)
        i++;
    return i < table->pages.count && page_table_at(table, i)->start < end;
}

/* Whether pages may be given back now so that smaller ones can be made in their place. */
static inline bool pages_may_be_remade(const struct bfc_pool *pool) {
    const struct bfc_page_calls *calls = &pool->paging->calls;
    return !calls->may_remake || calls->may_remake(pool->upstream.context);
}

/* Rounds bytes up to a multiple of the smallest page. */
static inline uint64_t round_to_pages(const struct bfc_pool *pool, uint64_t bytes) {
    uint64_t granule = pool->paging->calls.granule;
    return bfc_add_saturating(bytes, granule - 1) & ~(granule - 1);
}

#endif
