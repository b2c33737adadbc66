/* What a pool with pages has beside what every pool has. */
#ifndef BFC_POOL_PAGING_H
#define BFC_POOL_PAGING_H

#include "pool/structures/block.h"
#include "pool/structures/page_table.h"
#include "pool/structures/sorted.h"

/*
 * Invariants (checked by bfc_pool_check), with those of internal.h:
 *   a region that is `paged` is a reservation of addresses, and pages + bare = addresses; the
 * others are those of a pool without pages, and took the place of pages that were refused;
 *   a bare block has no page behind it but lost ones, and is in the list of bare ones and among
 * those sorted by size;
 *   any other block of such a region has pages behind all of it: so each page is behind blocks
 * that are live or free, and the pages that are not lost come, with the other regions, to
 * `reserved`;
 *   pages do not overlap;
 *   no two neighbours are both bare.
 * Of the pages that a plan has taken out, the table and the blocks know nothing until it is done.
 */
struct paging {
    struct bfc_page_calls calls;
    struct page_table table;
    struct page_array on_hand; /* whoever has the pages' turn: those that the plan is about */
    block_index bare;          /* list of bare blocks: who became one last comes first */
    block_index bare_sorted;   /* the same by size: the root of sorted.h */
    uint64_t addresses;        /* bytes reserved */
    uint64_t moving;           /* bytes of pages on their way; not in `reserved` meanwhile */
    uint32_t lost;             /* a count of pages */
    uint32_t looks;            /* a count, of bfc_pool_trim_idle */
    uint64_t created, moved, released, made_calls; /* as in struct bfc_page_stats */
    uint64_t moved_to_grow;                        /* of `moved`: not into a plan's region */
    uint64_t step_most;                            /* bytes: what was refused last was more */
};

static inline void bare_list(struct paging *paging, struct block *blocks,
                             struct block_detail *details, block_index b) {
    details[b].older = paging->bare;
    details[b].newer = 0;
    details[paging->bare].newer = b; /* record 0 takes what is for none */
    paging->bare = b;
    sorted_insert(&paging->bare_sorted, blocks, b);
}

static inline void bare_unlist(struct paging *paging, struct block *blocks,
                               struct block_detail *details, block_index b) {
    block_index older = details[b].older, newer = details[b].newer;
    details[older].newer = newer;
    *(newer ? &details[newer].older : &paging->bare) = older;
    sorted_remove(&paging->bare_sorted, blocks, b);
}

/* Puts `to` into the places of `from`, which it is a copy of. */
static inline void bare_replace(struct paging *paging, struct block *blocks,
                                struct block_detail *details, block_index from, block_index to) {
    block_index older = details[to].older, newer = details[to].newer;
    details[older].newer = to;
    *(newer ? &details[newer].older : &paging->bare) = to;
    sorted_replace(&paging->bare_sorted, blocks, from, to);
}

#endif
