#include "pool/paging/victims.h"

#include "pool/blocks/paging.h"
#include "pool/blocks/region.h"
#include "pool/blocks/slots.h"

struct choice {
    const struct bfc_pool *pool;
    uint64_t wanted, bytes;
    const block_index *keep;
    bool only_counts;
};

/* Returns the sum of the bytes of the pages that lie wholly within the range and are neither pinned
 * nor lost. */
static uint64_t pages_within(const struct page_table *table, bfc_addr start, bfc_addr end) {
    uint64_t bytes = 0;
    for (uint32_t i = page_table_find(table, start); i < table->pages.count; i++) {
        const struct page *page = page_table_at(table, i);
        if (page_end(page) > end)
            break;
        if (page->start >= start && !page->pins && !page->lost)
            bytes += page->bytes;
    }
    return bytes;
}

/* Returns the sum of the bytes of the unpinned pages that lie wholly within a ready block, which
 * has room for at least the smallest page. If all pages have the smallest size and none is pinned,
 * the block's bounds, moved inwards to bounds of pages, give the sum without a search. */
static uint64_t pages_within_ready(const struct page_table *table, const struct block *ready) {
    uint64_t most = table->granule - 1;
    bfc_addr start = (block_start(ready) + most) & ~most, end = block_end(ready) & ~most;
    return table->uneven || table->pinned ? pages_within(table, start, end) : end - start;
}

/* Chooses pages that lie wholly within block b and are not pinned, from b's upper end on, until the
 * sum of all chosen pages is as large as wanted. Adds them to the array on_hand in address order,
 * or with only_counts just adds up their bytes. */
static void choose_from(struct choice *c, block_index b) {
    const struct block *at = &c->pool->blocks[b];
    struct paging *paging = c->pool->paging;
    const struct page_table *table = &paging->table;
    uint64_t granule = paging->calls.granule;
    if ((block_end(at) & ~(granule - 1)) < block_start(at) + granule)
        return; /* b has no room for even the smallest page */
    if (c->only_counts) {
        c->bytes += region_of(c->pool, b)->paged ? pages_within_ready(table, at) : 0;
        return;
    }
    uint32_t end = page_table_find(table, block_end(at)), first = end;
    for (; first > 0 && c->bytes < c->wanted; first--) {
        const struct page *page = page_table_at(table, first - 1);
        if (page->start < block_start(at))
            break;
        c->bytes += page->pins ? 0 : page->bytes;
    }
    for (; first < end; first++)
        if (!page_table_at(table, first)->pins)
            page_array_append(&paging->on_hand, page_table_at(table, first));
}

static bool is_kept(const struct choice *c, block_index b) {
    return c->keep && (b == c->keep[0] || b == c->keep[1]);
}

/* Chooses pages from the free blocks of these bins, until the sum of the bytes is as large as
 * wanted. Goes from the bins of larger blocks to those of smaller ones. In a pool that keeps free
 * blocks sorted, goes in each zone from the smallest block to the largest. */
static void choose_in(struct choice *c, const struct bins *bins) {
    const struct block *blocks = c->pool->blocks;
    uint64_t least = c->pool->paging->calls.granule >> BFC_GRANULE_BITS;
    block_index b = 0;
    while (c->bytes < c->wanted && (b = bins_walk(bins, blocks, b, least)))
        if (!is_kept(c, b))
            choose_from(c, b);
}

static void drop_superfluous(struct choice *c) {
    struct page_array *on_hand = &c->pool->paging->on_hand;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < on_hand->count; i++) {
        const struct page *page = &on_hand->all[i];
        if (c->bytes - page->bytes >= c->wanted)
            c->bytes -= page->bytes;
        else
            on_hand->all[kept++] = *page;
    }
    on_hand->count = kept;
}

static void choose_in_all(struct choice *c, bool anywhere) {
    choose_in(c, &c->pool->ready);
    choose_in(c, &c->pool->small);
    if (anywhere)
        choose_in(c, &c->pool->apart);
}

uint64_t victims_choose(struct bfc_pool *pool, uint64_t wanted, const block_index keep[2],
                        bool anywhere) {
    struct choice c = {.pool = pool, .wanted = wanted, .keep = keep};
    struct paging *paging = pool->paging;
    paging->on_hand.count = 0;
    if (!page_array_prepare(&paging->on_hand, paging->table.pages.count))
        return 0;
    choose_in_all(&c, anywhere);
    if (c.bytes > wanted)
        drop_superfluous(&c);
    return c.bytes;
}

uint64_t victims_ready(const struct bfc_pool *pool) {
    struct choice c = {.pool = pool, .wanted = UINT64_MAX, .only_counts = true};
    choose_in_all(&c, true);
    return c.bytes;
}

static bool will_be_ready(const struct block *b) {
    enum block_state state = block_state(b);
    return state == BLOCK_PENDING || state == BLOCK_DEFERRED;
}

/* Block b, pending or deferred, is in a run of neighbouring ready, pending and deferred blocks.
 * Returns the run's first block if b is its first pending or deferred one, else 0. A caller that
 * comes to every pending and deferred block thus counts each run once. */
static block_index begin_of_run(const struct bfc_pool *pool, block_index b) {
    const struct block *blocks = pool->blocks;
    for (block_index before = blocks[b].previous;
         block_state(&blocks[before]) == BLOCK_READY || will_be_ready(&blocks[before]);
         before = blocks[before].previous) {
        if (will_be_ready(&blocks[before]))
            return 0;
        b = before;
    }
    return b;
}

/* Returns the sum of the bytes of the pages that lie in the run of ready, pending and deferred
 * blocks from b on, but not wholly in one of its ready blocks. */
static uint64_t to_come_in_run(const struct bfc_pool *pool, block_index b) {
    const struct page_table *table = &pool->paging->table;
    const struct block *blocks = pool->blocks;
    bfc_addr start = block_start(&blocks[b]), end = start;
    uint64_t ready = 0;
    for (; b && (block_state(&blocks[b]) == BLOCK_READY || will_be_ready(&blocks[b]));
         b = blocks[b].next) {
        end = block_end(&blocks[b]);
        if (block_state(&blocks[b]) == BLOCK_READY)
            ready += pages_within(table, block_start(&blocks[b]), end);
    }
    return pages_within(table, start, end) - ready;
}

uint64_t victims_to_come(const struct bfc_pool *pool) {
    const struct block_list *lists[] = {&pool->pending_list, &pool->deferred_list};
    uint64_t bytes = 0;
    for (int i = 0; i < 2; i++)
        for (block_index b = lists[i]->oldest; b; b = pool->details[b].newer) {
            block_index first = region_of(pool, b)->paged ? begin_of_run(pool, b) : 0;
            bytes += first ? to_come_in_run(pool, first) : 0;
        }
    return bytes;
}

bool victims_take(struct bfc_pool *pool) {
    struct paging *paging = pool->paging;
    /* Cutting the pages out of their blocks takes block records, and mapping them elsewhere later
     * takes as many. If they were lacking only then, the pages would be lost. So the records for
     * both are reserved here. */
    if (!slots_prepare(pool, BARE_RECORDS * (2 * (uint64_t)paging->on_hand.count + 2)))
        return false;
    page_array_sort(&paging->on_hand);
    page_table_remove(&paging->table, &paging->on_hand);
    const struct page_array *gone = &paging->on_hand;
    for (uint32_t i = 0, end; i < gone->count; i = end) {
        end = victims_run(gone, i, gone->count);
        uint64_t bytes = page_end(&gone->all[end - 1]) - gone->all[i].start;
        bare_strip(pool, gone->all[i].start, bytes);
        paging->moving += bytes;
    }
    return true;
}

uint32_t victims_run(const struct page_array *pages, uint32_t from, uint32_t count) {
    uint32_t end = from + 1;
    while (end < count && pages->all[end].start == page_end(&pages->all[end - 1]))
        end++;
    return end;
}
