/* The state of a pool with pages (pool/pages.h). Called under the lock. */
#ifndef BFC_POOL_PAGING_H
#define BFC_POOL_PAGING_H

#include "base/numbers.h"
#include "pool/blocks/pool_state.h"
#include "pool/structures/page_table.h"

/*
 * Invariants (checked by bfc_pool_check), with those of pool_state.h:
 *
 * - A region that is `paged` is a reservation of addresses, of which each byte has a page or is
 *   bare; other regions come from the upstream's `reserve`.
 * - A bare block has no page behind it, except lost ones.
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
    uint64_t addresses;        /* bytes of addresses that are reserved */
    /* bytes of the pages that victims_take has taken out; not part of `reserved` */
    uint64_t moving;
    uint32_t lost;  /* how many pages are mapped but unusable */
    bool frozen;    /* bfc_pool_freeze_pages; changed with growth_lock and the pool's lock */
    uint32_t looks; /* how often bfc_pool_trim_idle was called */
    /* the counters of the same names in struct bfc_page_stats */
    uint64_t created, moved, released, made_calls;
    uint64_t moved_to_grow; /* bytes of pages that were moved to serve requests */
    uint64_t page_bound;    /* page_rule auto: bytes of the largest page to make now */
    uint64_t step_most; /* bytes of the largest step of growth, lowered when the device refuses one
                         */
};

/* Returns how many bytes may be added to `reserved` before the limit. */
static inline uint64_t room_below_limit(const struct bfc_pool *pool) {
    uint64_t moving = pool->paging ? pool->paging->moving : 0;
    uint64_t taken = pool->stats->reserved + pool->releasing + moving;
    return ROUND_DOWN(bfc_subtract_saturating(pool->config.limit, taken));
}

/* Whether a lost page is mapped in this range. The addresses of such a page cannot get another
 * page. */
static inline bool has_lost(const struct bfc_pool *pool, bfc_addr start, bfc_addr end) {
    const struct page_table *table = &pool->paging->table;
    uint32_t i = pool->paging->lost ? page_table_find(table, start) : table->pages.count;
    while (i < table->pages.count && !page_table_at(table, i)->lost)
        i++;
    return i < table->pages.count && page_table_at(table, i)->start < end;
}

/* May pages be given back now for smaller ones in their place? */
static inline bool pages_may_be_remade(const struct bfc_pool *pool) {
    const struct bfc_page_calls *calls = &pool->paging->calls;
    return !calls->may_remake || calls->may_remake(pool->upstream.context);
}

/* Rounds bytes up to whole granules of pages. */
static inline uint64_t round_to_pages(const struct bfc_pool *pool, uint64_t bytes) {
    uint64_t granule = pool->paging->calls.granule;
    return bfc_add_saturating(bytes, granule - 1) & ~(granule - 1);
}

#endif
