#include "pool/pages.h"

#include "base/numbers.h"
#include "pool/blocks/paging.h"
#include "pool/blocks/surgery.h"
#include "pool/paging/victims.h"

static void add_up(const struct page_table *table, struct bfc_page_stats *stats) {
    for (uint32_t i = 0; i < table->pages.count; i++) {
        const struct page *page = page_table_at(table, i);
        stats->pinned += page->pins ? page->bytes : 0;
        stats->lost += page->lost ? page->bytes : 0;
        stats->bare -= page->lost ? 0 : page->bytes;
    }
}

bool bfc_pool_page_stats(struct bfc_pool *pool, struct bfc_page_stats *stats) {
    const struct paging *paging = pool->paging;
    if (!paging)
        return false;
    bfc_pool_hold_pages(pool);
    pool_enter(pool);
    settle_completed(pool, FENCES_ALL);
    *stats = (struct bfc_page_stats){.addresses = paging->addresses,
                                     .bare = paging->addresses,
                                     .pages = paging->table.pages.count,
                                     .ready = victims_ready(pool),
                                     .created = paging->created,
                                     .moved = paging->moved,
                                     .released = paging->released,
                                     .calls = paging->made_calls};
    add_up(&paging->table, stats);
    pool_leave(pool);
    bfc_pool_let_pages(pool);
    return true;
}

struct range {
    /* the index of the first page of the range in the page table, and the index after the range's
     * last page */
    uint32_t first, end;
    bool whole; /* whether all addresses of the range have pages that can be used */
};

static struct range find_range(const struct page_table *table, bfc_addr start, uint64_t bytes) {
    bfc_addr end = bfc_add_saturating(start, bytes), reached = start;
    struct range range = {.first = page_table_find(table, start), .whole = true};
    for (range.end = range.first; range.end < table->pages.count; range.end++) {
        const struct page *page = page_table_at(table, range.end);
        if (page->start >= end)
            break;
        range.whole &= page->start <= reached && !page->lost;
        reached = page_end(page);
    }
    range.whole &= reached >= end;
    return range;
}

bool bfc_pool_pin(struct bfc_pool *pool, bfc_addr start, uint64_t bytes) {
    if (!pool->paging || !bytes)
        return false;
    pool_enter(pool);
    struct page_table *table = &pool->paging->table;
    struct range range = find_range(table, start, bytes);
    for (uint32_t i = range.first; range.whole && i < range.end; i++)
        table->pinned += page_table_at(table, i)->pins++ == 0;
    pool_leave(pool);
    return range.whole;
}

void bfc_pool_unpin(struct bfc_pool *pool, bfc_addr start, uint64_t bytes) {
    if (!pool->paging || !bytes)
        return;
    pool_enter(pool);
    struct page_table *table = &pool->paging->table;
    struct range range = find_range(table, start, bytes);
    for (uint32_t i = range.first; i < range.end; i++)
        if (page_table_at(table, i)->pins > 0)
            table->pinned -= --page_table_at(table, i)->pins == 0;
    pool_leave(pool);
}

uint64_t bfc_pool_visit_pages(struct bfc_pool *pool, bfc_addr start, uint64_t bytes,
                              bool (*visit)(void *context, const struct bfc_page_info *page),
                              void *context) {
    if (!pool->paging || !bytes)
        return 0;
    bool goes_on = true;
    pool_enter(pool);
    const struct page_table *table = &pool->paging->table;
    struct range range = find_range(table, start, bytes);
    uint32_t i = range.first;
    for (; goes_on && i < range.end; i++) {
        const struct page *page = page_table_at(table, i);
        goes_on = visit(context, &(struct bfc_page_info){page->handle, page->start, page->bytes,
                                                         page->pins, page->lost, page->asleep});
    }
    pool_leave(pool);
    return i - range.first;
}

void bfc_pool_hold_pages(struct bfc_pool *pool) {
    growth_lock(pool);
}

void bfc_pool_let_pages(struct bfc_pool *pool) {
    growth_unlock(pool);
}

static void set_frozen(struct bfc_pool *pool, bool frozen) {
    bfc_pool_hold_pages(pool);
    pool_enter(pool);
    pool->paging->frozen = frozen;
    pool_leave(pool);
    bfc_pool_let_pages(pool);
}

void bfc_pool_freeze_pages(struct bfc_pool *pool) {
    set_frozen(pool, true);
}

void bfc_pool_thaw_pages(struct bfc_pool *pool) {
    set_frozen(pool, false);
}

void bfc_pool_set_page(struct bfc_pool *pool, bfc_addr start, bfc_page page, bool asleep) {
    pool_enter(pool);
    struct page_table *table = &pool->paging->table;
    uint32_t i = page_table_find(table, start);
    if (i < table->pages.count && page_table_at(table, i)->start == start) {
        page_table_at(table, i)->handle = page;
        page_table_at(table, i)->asleep = asleep;
    }
    pool_leave(pool);
}
