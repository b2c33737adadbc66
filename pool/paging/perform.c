/*
 * Carries out a plan of page_plan.h. New pages are made first, since the device may refuse them,
 * and until then nothing has changed. Then the pages that move are unmapped, one run of neighbours
 * at a time, and all pages are mapped at their new addresses, to which one call gives access. If
 * the device refuses one of these later calls, which is not expected, the pages that are no longer
 * mapped are given back.
 */
#include "pool/paging/page_plan.h"

#include "base/numbers.h"
#include "pool/blocks/paging.h"
#include "pool/blocks/region.h"
#include "pool/blocks/slots.h"
#include "pool/paging/victims.h"
#include "pool/policy/growth.h"

/* How far a plan was carried out. The array on_hand holds first the pages that move or go back,
 * then the new ones; "the first" pages below are those at its beginning. */
struct outcome {
    uint32_t planned; /* how many pages move or are given back */
    /* how many pages, from the first on, have been unmapped from their old addresses */
    uint32_t unmapped;
    /* how many pages, from the first on, are mapped at new addresses where they cannot be used */
    uint32_t lost;
    bool done;        /* whether all pages are mapped at their new addresses and may be used */
    uint64_t creates; /* how many calls have asked the device for a new page */
    /* bytes of new pages that the device made, including those that have gone back */
    uint64_t made;
};

static void release_page(struct bfc_pool *pool, const struct page *page) {
    struct paging *paging = pool->paging;
    paging->made_calls++;
    paging->calls.release(pool->upstream.context, page->handle, page->bytes);
}

static bool unmap_range(struct bfc_pool *pool, bfc_addr start, uint64_t bytes) {
    pool->paging->made_calls++;
    return pool->paging->calls.unmap(pool->upstream.context, start, bytes);
}

static enum bfc_reserve_result create_page(struct bfc_pool *pool, uint64_t bytes) {
    struct paging *paging = pool->paging;
    struct page page = {.bytes = bytes};
    if (!page_array_prepare(&paging->on_hand, 1) ||
        !page_array_prepare(&paging->table.pages, (uint64_t)paging->on_hand.count + 1))
        return BFC_FAILED;
    paging->made_calls++;
    enum bfc_reserve_result result =
        paging->calls.create(pool->upstream.context, bytes, &page.handle, &pool->ask);
    if (result == BFC_RESERVED)
        page_array_append(&paging->on_hand, &page);
    return result;
}

/* Gives back the pages of the array on_hand from index `first` on, except those from index
 * `unmapped` up to `planned`, which are still mapped at their old addresses. */
static void release_from(struct bfc_pool *pool, uint32_t first, const struct outcome *o) {
    const struct page_array *on_hand = &pool->paging->on_hand;
    uint64_t bytes = 0;
    for (uint32_t i = first; i < on_hand->count; i++)
        if (i < o->unmapped || i >= o->planned) {
            release_page(pool, &on_hand->all[i]);
            bytes += on_hand->all[i].bytes;
        }
    if (bytes && pool->paging->calls.released)
        pool->paging->calls.released(pool->upstream.context, bytes);
}

/* Makes all new pages of the plan. If the device refuses one, gives back those that were made
 * before it. */
static enum bfc_reserve_result create_pages(struct bfc_pool *pool, const struct page_plan *plan,
                                            struct outcome *o) {
    enum bfc_reserve_result result = BFC_RESERVED;
    while (o->made < plan->making && result == BFC_RESERVED) {
        uint64_t end = o->made < plan->own ? plan->own : plan->making;
        uint64_t page = bfc_min(plan->page, end - o->made);
        result = create_page(pool, page);
        o->made += result == BFC_RESERVED ? page : 0;
        o->creates++;
    }
    if (result != BFC_RESERVED) {
        release_from(pool, o->planned, o);
        pool->paging->on_hand.count = o->planned;
    }
    return result;
}

/* Unmaps the first `count` pages of the array on_hand, a run of neighbours in each call, until the
 * device refuses one; returns how many pages were unmapped. */
static uint32_t unmap_runs(struct bfc_pool *pool, uint32_t count) {
    const struct page *all = pool->paging->on_hand.all;
    uint32_t i = 0;
    while (i < count) {
        uint32_t end = victims_run(&pool->paging->on_hand, i, count);
        if (!unmap_range(pool, all[i].start, page_end(&all[end - 1]) - all[i].start))
            break;
        i = end;
    }
    return i;
}

/* Maps the pages of the array on_hand one after the other from the address `at` on, until the
 * device refuses one. Returns how many pages were mapped. */
static uint32_t map_pages(struct bfc_pool *pool, bfc_addr at) {
    struct paging *paging = pool->paging;
    uint32_t i = 0;
    for (; i < paging->on_hand.count; i++) {
        struct page *page = &paging->on_hand.all[i];
        paging->made_calls++;
        if (!paging->calls.map(pool->upstream.context, at, page->bytes, page->handle))
            break;
        page->start = at;
        page->look = 0;
        at += page->bytes;
    }
    return i;
}

/* Called after the device has refused to unmap, map or give access: unmaps the first `mapped` pages
 * from their new addresses, which begin at `at`, and gives back all pages that are not mapped. */
static void undo_mapping(struct bfc_pool *pool, bfc_addr at, uint32_t mapped, struct outcome *o) {
    const struct page *all = pool->paging->on_hand.all;
    if (mapped && !unmap_range(pool, at, page_end(&all[mapped - 1]) - at))
        o->lost = mapped;
    release_from(pool, o->lost, o);
}

static void place_pages(struct bfc_pool *pool, const struct page_plan *plan, struct outcome *o) {
    struct paging *paging = pool->paging;
    uint32_t mapped = 0;
    o->unmapped = unmap_runs(pool, o->planned);
    if (o->unmapped == o->planned)
        mapped = map_pages(pool, plan->at);
    if (o->unmapped == o->planned && mapped == paging->on_hand.count) {
        paging->made_calls++;
        o->done =
            paging->calls.allow(pool->upstream.context, plan->at, plan->moving + plan->making);
    }
    if (!o->done)
        undo_mapping(pool, plan->at, mapped, o);
}

static uint64_t bytes_of(const struct page *pages, uint32_t first, uint32_t end) {
    uint64_t bytes = 0;
    for (uint32_t i = first; i < end; i++)
        bytes += pages[i].bytes;
    return bytes;
}

/* Marks a page that is mapped but cannot be used as lost. Its addresses count as bare until the
 * page can be unmapped. */
static void lose_page(struct bfc_pool *pool, struct page *page) {
    page->lost = true;
    pool->paging->lost++;
    page_table_add(&pool->paging->table, page, 1);
}

/* Adds the pages of the array on_hand from index `first` up to `end`, which are mapped, to the page
 * table, and makes their addresses ready. If the host has no memory for that, the pages are
 * lost. */
static enum bfc_status take_in(struct bfc_pool *pool, uint32_t first, uint32_t end) {
    struct paging *paging = pool->paging;
    struct page *all = paging->on_hand.all;
    bool noted = slots_prepare(pool, BARE_RECORDS * (uint64_t)(end - first));
    for (uint32_t i = first; !noted && i < end; i++)
        lose_page(pool, &all[i]);
    if (noted)
        page_table_add(&paging->table, &all[first], end - first);
    for (uint32_t i = first, next; noted && i < end; i = next) {
        next = victims_run(&paging->on_hand, i, end);
        bare_back(pool, all[i].start, page_end(&all[next - 1]) - all[i].start);
    }
    return noted ? BFC_OK : BFC_NO_HOST_MEMORY;
}

/* Updates the records after a plan has failed. Pages that were unmapped have been given back,
 * except those that can no longer be used, which become lost. Pages that are still mapped at their
 * old addresses become ready again. */
static enum bfc_status note_failure(struct bfc_pool *pool, const struct outcome *o) {
    struct paging *paging = pool->paging;
    for (uint32_t i = 0; i < o->lost; i++) {
        paging->created += i < o->planned ? 0 : paging->on_hand.all[i].bytes;
        lose_page(pool, &paging->on_hand.all[i]);
    }
    if (o->lost < o->unmapped)
        paging->released += bytes_of(paging->on_hand.all, o->lost, o->unmapped);
    take_in(pool, o->unmapped, o->planned);
    return BFC_UPSTREAM_FAILED;
}

static enum bfc_status note_outcome(struct bfc_pool *pool, const struct page_plan *plan,
                                    const struct outcome *o) {
    struct paging *paging = pool->paging;
    if (!o->done)
        return note_failure(pool, o);
    paging->moved += plan->moving;
    paging->created += plan->making;
    enum bfc_status status = take_in(pool, 0, paging->on_hand.count);
    page_growth_made(pool, plan->making, plan->page, o->creates);
    return status;
}

enum bfc_status perform_plan(struct bfc_pool *pool, const struct page_plan *plan) {
    struct outcome o = {.planned = pool->paging->on_hand.count};
    pool_leave(pool);
    enum bfc_reserve_result result = create_pages(pool, plan, &o);
    if (result == BFC_RESERVED)
        place_pages(pool, plan, &o);
    pool_enter(pool);
    pool->paging->moving -= plan->moving;
    pool->stats->reserve_calls += o.creates;
    if (result == BFC_REFUSED) {
        pool->stats->refusals++;
        page_growth_refused(pool, plan->making, o.made);
    }
    enum bfc_status status = note_outcome(pool, plan, &o);
    return result == BFC_REFUSED ? BFC_OUT_OF_MEMORY : status;
}

uint64_t perform_release(struct bfc_pool *pool) {
    struct paging *paging = pool->paging;
    struct outcome o = {.planned = paging->on_hand.count};
    if (!o.planned || !victims_take(pool))
        return 0;
    /* Threads that lack memory wait as long as bytes are being given back
     * (bfc_pool_await_releases). So the bytes of these pages count as being given back until the
     * device has them. */
    uint64_t planned = bytes_of(paging->on_hand.all, 0, o.planned);
    paging->moving -= planned;
    pool->releasing += planned;
    pool_leave(pool);
    o.unmapped = unmap_runs(pool, o.planned);
    release_from(pool, 0, &o);
    pool_enter(pool);
    pool->releasing -= planned;
    uint64_t released = bytes_of(paging->on_hand.all, 0, o.unmapped);
    pool->stats->release_calls += o.unmapped;
    paging->released += released;
    take_in(pool, o.unmapped, o.planned);
    return released;
}

static void choose_lost(struct paging *paging) {
    paging->on_hand.count = 0;
    if (!page_array_prepare(&paging->on_hand, paging->lost))
        return;
    for (uint32_t i = 0; paging->on_hand.count < paging->lost; i++)
        if (page_table_at(&paging->table, i)->lost)
            page_array_append(&paging->on_hand, page_table_at(&paging->table, i));
}

/* Unmaps the pages of the array on_hand, and removes from the array those that the device refuses
 * to unmap. */
static void unmap_possible(struct bfc_pool *pool) {
    struct page_array *on_hand = &pool->paging->on_hand;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < on_hand->count; i++) {
        const struct page page = on_hand->all[i];
        if (unmap_range(pool, page.start, page.bytes))
            on_hand->all[kept++] = page;
    }
    on_hand->count = kept;
}

uint64_t perform_recover(struct bfc_pool *pool) {
    struct paging *paging = pool->paging;
    if (!paging->lost)
        return 0;
    choose_lost(paging);
    pool_leave(pool);
    unmap_possible(pool);
    release_from(pool, 0, &(struct outcome){.planned = 0});
    pool_enter(pool);
    uint64_t released = bytes_of(paging->on_hand.all, 0, paging->on_hand.count);
    page_table_remove(&paging->table, &paging->on_hand);
    paging->lost -= paging->on_hand.count;
    paging->released += released;
    return released;
}

void perform_end(struct bfc_pool *pool) {
    struct paging *paging = pool->paging;
    const struct page_array *pages = &paging->table.pages;
    for (uint32_t i = 0, end; i < pages->count; i = end) {
        end = victims_run(pages, i, pages->count);
        bfc_addr start = pages->all[i].start;
        bool went = unmap_range(pool, start, page_end(&pages->all[end - 1]) - start);
        for (; went && i < end; i++)
            release_page(pool, &pages->all[i]);
    }
    for (region_index r = 1; r < pool->region_high; r++)
        if (pool->regions[r].paged)
            paging->calls.unreserve(pool->upstream.context, pool->regions[r].start,
                                    pool->regions[r].size);
}
