
#include "pool/blocks/paging.h"
#include "pool/paging/grow.h"
#include "pool/paging/page_plan.h"
#include "pool/paging/victims.h"
#include "pool/policy/growth.h"
#include "pool/search/take.h"

/* Neighbouring pages: the index of the first in the page table, and the index after the last. */
struct span {
    uint32_t first, end;
};

/* Whether the page has more than `most` bytes, is not pinned, and lies wholly within this ready
 * block. */
static bool is_too_large(const struct page *page, const struct block *ready, uint64_t most) {
    return page->bytes > most && !page->pins && page->start >= block_start(ready) &&
           page_end(page) <= block_end(ready);
}

/* Finds, among the pages of the addresses that the request would get, the first run of pages so
 * much larger than the request (page_growth_most) that smaller ones should take their place. False:
 * there is none. */
static bool find_span(struct bfc_pool *pool, const struct request *request, struct span *span) {
    const struct page_table *table = &pool->paging->table;
    uint64_t most = page_growth_most(pool, request_size(request));
    block_index b = take_find(pool, request->granules);
    const struct block *at = &pool->blocks[b];
    if (!b || block_size(at) <= most)
        return false;
    bfc_addr end = block_start(at) + request_size(request) +
                   (block_lead(pool, b, request->granules) << BFC_GRANULE_BITS);
    uint32_t i = page_table_find(table, block_start(at));
    while (i < table->pages.count && page_table_at(table, i)->start < end &&
           !is_too_large(page_table_at(table, i), at, most))
        i++;
    span->first = i;
    while (i < table->pages.count && page_table_at(table, i)->start < end &&
           is_too_large(page_table_at(table, i), at, most))
        i++;
    span->end = i;
    return span->first < span->end;
}

static bool take_span(struct bfc_pool *pool, struct span span) {
    struct paging *paging = pool->paging;
    paging->on_hand.count = 0;
    if (!page_array_prepare(&paging->on_hand, span.end - span.first))
        return false;
    for (uint32_t i = span.first; i < span.end; i++)
        page_array_append(&paging->on_hand, page_table_at(&paging->table, i));
    return true;
}

static bool remake_span(struct bfc_pool *pool, struct span span, uint64_t page) {
    const struct page_table *table = &pool->paging->table;
    bfc_addr at = page_table_at(table, span.first)->start;
    uint64_t bytes = page_end(page_table_at(table, span.end - 1)) - at;
    struct page_plan plan;
    return take_span(pool, span) && perform_release(pool) == bytes &&
           plan_new(pool, at, bytes, page, &plan) == BFC_OK && perform_plan(pool, &plan) == BFC_OK;
}

bool remake_before(struct bfc_pool *pool, const struct request *request) {
    struct span span;
    bool large = pool->paging->table.large != 0;
    policy_watch(pool, large ? pool->rules.watched - 1 : 0);
    if (!large || growth_is_under_way(pool) || !find_span(pool, request, &span) ||
        !pages_may_be_remade(pool))
        return true;
    if (request->flags & BFC_ALLOCATE_HIT_ONLY)
        return false;
    bool done = true;
    pages_lock_growth(pool);
    while (done && !pool->paging->frozen && find_span(pool, request, &span))
        done = remake_span(pool, span, page_growth_size(pool, request_size(request)));
    growth_unlock(pool);
    if (!done)
        policy_watch(pool, 0);
    return true;
}
