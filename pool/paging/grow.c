#include "pool/paging/grow.h"

#include "pool/blocks/paging.h"
#include "pool/blocks/region.h"
#include "pool/paging/page_plan.h"
#include "pool/paging/victims.h"
#include "pool/policy/growth.h"
#include "pool/policy/policy.h"
#include "pool/search/take.h"

void pages_lock_growth(struct bfc_pool *pool) {
    pool_leave(pool);
    growth_lock(pool);
    pool_enter(pool);
    pool->ask = (struct bfc_ask){.error = 0};
}

enum bfc_status pages_lock_awake(struct bfc_pool *pool) {
    int error = 0;
    pages_lock_growth(pool);
    while (!error && pool->paging && pool->paging->frozen) {
        growth_unlock(pool);
        pool_leave(pool);
        error = pool->paging->calls.wake(pool->upstream.context);
        pool_enter(pool);
        pages_lock_growth(pool);
    }
    pool->ask.error = error;
    return error ? BFC_ASLEEP : BFC_OK;
}

void growth_begin(struct bfc_pool *pool, const struct request *request) {
    pages_lock_growth(pool);
    pool->ask.is_first = request->flags & BFC_ALLOCATE_FIRST;
}

void growth_end(struct bfc_pool *pool, const struct request *request) {
    if (pool->ask.error)
        request->out->error = pool->ask.error;
    growth_unlock(pool);
}

bool pages_may_grow(struct bfc_pool *pool) {
    const struct bfc_page_calls *calls = &pool->paging->calls;
    if (!calls->may_grow)
        return true;
    pool_leave(pool);
    bool may = calls->may_grow(pool->upstream.context);
    pool_enter(pool);
    return may;
}

/* Reserves *bytes of addresses. As long as the device refuses, tries half as much, down to `least`,
 * and sets *bytes to what was reserved. Called without the lock. */
static enum bfc_reserve_result reserve_addresses(struct bfc_pool *pool, uint64_t least,
                                                 uint64_t *bytes, bfc_addr *start) {
    struct paging *paging = pool->paging;
    for (;; *bytes = bfc_max(least, round_to_pages(pool, *bytes / 2))) {
        paging->made_calls++;
        enum bfc_reserve_result result =
            paging->calls.reserve(pool->upstream.context, *bytes, start);
        if (result != BFC_REFUSED || *bytes == least)
            return result;
    }
}

/* Adds the `bytes` of addresses that were reserved at `start` as a region, in the zone to which
 * blocks of `size` bytes belong. If the host has no memory for the region's records, gives the
 * addresses back to the device. */
static enum bfc_status note_addresses(struct bfc_pool *pool, bfc_addr start, uint64_t bytes,
                                      uint64_t size) {
    if (bare_add_region(pool, start, bytes, policy_zone(pool, size)))
        return BFC_OK;
    pool_leave(pool);
    pool->paging->made_calls++;
    pool->paging->calls.unreserve(pool->upstream.context, start, bytes);
    pool_enter(pool);
    return BFC_NO_HOST_MEMORY;
}

/* Reserves `least` to `most` bytes of addresses, and adds them as a region, in the zone to which
 * blocks of `size` bytes belong. */
static enum bfc_status add_addresses(struct bfc_pool *pool, uint64_t least, uint64_t most,
                                     uint64_t size, bfc_addr *start) {
    uint64_t bytes = bfc_max(least, most);
    if (least > LARGEST_BLOCK)
        return BFC_OUT_OF_MEMORY;
    pool_leave(pool);
    enum bfc_reserve_result result = reserve_addresses(pool, least, &bytes, start);
    pool_enter(pool);
    if (result != BFC_RESERVED)
        /* Even where the device refuses addresses, the result is not BFC_OUT_OF_MEMORY, since
         * addresses take no memory of the device. */
        return BFC_UPSTREAM_FAILED;
    return note_addresses(pool, *start, bytes, size);
}

static enum bfc_status add_usual_addresses(struct bfc_pool *pool, uint64_t least, uint64_t size) {
    uint64_t usual = round_to_pages(pool, pool->paging->calls.addresses);
    bfc_addr start;
    return add_addresses(pool, least, bfc_min(usual, LARGEST_BLOCK), size, &start);
}

/* Removes from the array on_hand (the pages that are about to be given back) all pages of at most
 * `most` bytes, so that these stay in the pool. */
static void keep_larger(struct page_array *on_hand, uint64_t most) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < on_hand->count; i++)
        if (on_hand->all[i].bytes > most)
            on_hand->all[kept++] = on_hand->all[i];
    on_hand->count = kept;
}

/* With page rule auto, gives the ready pages of more than twice `page` bytes back to the device, so
 * that the pool can make smaller ones in their place. Returns how many bytes went back. */
static uint64_t release_larger(struct bfc_pool *pool, uint64_t page) {
    if (pool->config.page_rule != BFC_PAGE_AUTO || !pages_may_be_remade(pool))
        return 0;
    victims_choose(pool, UINT64_MAX, NULL, false);
    keep_larger(&pool->paging->on_hand, 2 * page);
    return perform_release(pool);
}

/* If the request needs more new pages than the pool may make, so that pages would have to move, and
 * the size of new pages is bounded (page_growth_look), gives back ready pages that are more than
 * twice that size; smaller ones are then made in their place. Returns how many bytes went back. */
static uint64_t release_unwieldy(struct bfc_pool *pool, const struct request *request) {
    uint64_t bytes = round_to_pages(pool, request_size(request));
    bool moves = page_growth_room(pool, request->bytes) < bytes;
    if (!moves || pool->paging->page_bound == UINT64_MAX)
        return 0;
    return release_larger(pool, page_growth_size(pool, bytes));
}

/* Makes or moves pages for the request, and sets `*at` to the address of the memory that is now
 * free for it. If addresses are lacking, only reserves addresses; if ready pages are too large,
 * only gives these pages back to the device. In both cases `*at` does not change, and the caller
 * tries again. */
static enum bfc_status make_room(struct bfc_pool *pool, const struct request *request, bool saving,
                                 bfc_addr *at) {
    struct page_plan plan;
    if (release_unwieldy(pool, request))
        return BFC_OK;
    enum bfc_status status = plan_make(pool, request, saving, &plan);
    if (status == BFC_OUT_OF_MEMORY && plan.missing)
        return add_usual_addresses(pool, plan.missing, request_size(request));
    if (status != BFC_OK)
        return status;
    *at = plan.at;
    status = perform_plan(pool, &plan);
    page_growth_moved(pool, status == BFC_OK ? plan.moving : 0);
    return status;
}

/* In a pool that keeps free blocks sorted, serves the request from the memory that make_room has
 * made at `at`, since a search might choose another block. False: the pool does not sort free
 * blocks, or there is no room at `at` any more. */
static bool take_at(struct bfc_pool *pool, bfc_addr at, const struct request *request) {
    block_index b = pool->rules.exact && at ? find_holding(pool, at) : 0;
    return b && block_state(&pool->blocks[b]) == BLOCK_READY &&
           block_has_room(pool, b, request->granules) && take_ready(pool, b, request);
}

/* Whether another attempt to serve a request, with as few new pages as possible, may succeed after
 * an attempt has failed with this status. */
static bool is_worth_saving(enum bfc_status status) {
    return status == BFC_OUT_OF_MEMORY || status == BFC_UPSTREAM_FAILED;
}

bool pages_grow(struct bfc_pool *pool, const struct request *request, enum bfc_status *status) {
    bool saving = false, taken;
    *status = pages_lock_awake(pool);
    pool->ask.is_first = request->flags & BFC_ALLOCATE_FIRST;
    if (*status == BFC_OK)
        perform_recover(pool);
    /* Other threads may have freed memory while the lock was dropped, so each round first searches
     * for a free block before it makes or moves pages. */
    while (!(taken = take_any(pool, request)) && *status == BFC_OK) {
        bfc_addr at = 0;
        page_growth_look(pool);
        *status = make_room(pool, request, saving, &at);
        if (*status == BFC_OK && (taken = take_at(pool, at, request)))
            break;
        if (!saving && is_worth_saving(*status)) {
            saving = true;
            *status = BFC_OK;
            perform_recover(pool);
        }
    }
    growth_end(pool, request);
    if (!taken && take_from_other_zone(pool, request))
        taken = pool->rules.mixes = true;
    *status = taken ? BFC_OK : *status;
    return taken;
}

enum bfc_status pages_add_planned(struct bfc_pool *pool, uint64_t bytes, region_index *region) {
    bfc_addr start;
    uint64_t whole = round_to_pages(pool, bytes);
    enum bfc_status status = add_addresses(pool, whole, whole, bytes, &start);
    if (status == BFC_OK) {
        struct region *added = region_of(pool, find_holding(pool, start));
        added->planned = true;
        *region = (region_index)(added - pool->regions);
    }
    return status;
}

static block_index first_bare(const struct bfc_pool *pool, region_index r) {
    block_index b = pool->blocks[pool->regions[r].head].next;
    while (b && block_state(&pool->blocks[b]) != BLOCK_BARE)
        b = pool->blocks[b].next;
    return b;
}

enum bfc_status pages_back(struct bfc_pool *pool, region_index r) {
    enum bfc_status status = BFC_OK;
    release_larger(pool, page_growth_fit(pool, pool->regions[r].bare));
    while (status == BFC_OK && pool->regions[r].bare) {
        const struct block *bare = &pool->blocks[first_bare(pool, r)];
        struct page_plan plan;
        status = plan_for(pool, block_start(bare), block_size(bare), &plan);
        if (status == BFC_OK)
            status = perform_plan(pool, &plan);
    }
    return status;
}

/* Keeps in the array on_hand (the pages that are about to be given back) only pages that all calls,
 * for at least idle_ns nanoseconds, have found ready. For a page that the previous call did not
 * find ready, records the time `now`. */
static void keep_overdue(struct bfc_pool *pool, uint64_t idle_ns, uint64_t now) {
    struct paging *paging = pool->paging;
    struct page_array *on_hand = &paging->on_hand;
    uint32_t count = on_hand->count, look = ++paging->looks;
    on_hand->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = page_table_find(&paging->table, on_hand->all[i].start);
        struct page *page = page_table_at(&paging->table, at);
        if (!page->look || page->look != look - 1)
            page->seen_ns = now;
        page->look = look;
        if (now - page->seen_ns >= idle_ns)
            page_array_append(on_hand, page);
    }
}

/* While bfc_pool_freeze_pages forbids to change pages (`frozen`), gives none back: the memory
 * behind them may have gone to other jobs already. */
uint64_t pages_trim_idle(struct bfc_pool *pool, uint64_t idle_ns, uint64_t now) {
    uint64_t released = 0;
    if (growth_is_under_way(pool))
        return 0;
    pages_lock_growth(pool);
    if (!pool->paging->frozen) {
        released = perform_recover(pool);
        victims_choose(pool, UINT64_MAX, NULL, true);
        keep_overdue(pool, idle_ns, now);
        released += perform_release(pool);
    }
    growth_unlock(pool);
    return released;
}

static uint64_t trim_pages(struct bfc_pool *pool, uint64_t bytes, bool anywhere) {
    uint64_t released = 0;
    if (growth_is_under_way(pool))
        return 0;
    pages_lock_growth(pool);
    if (!pool->paging->frozen) {
        released = perform_recover(pool);
        victims_choose(pool, bfc_subtract_saturating(bytes, released), NULL, anywhere);
        released += perform_release(pool);
    }
    growth_unlock(pool);
    return released;
}

uint64_t pages_trim(struct bfc_pool *pool, uint64_t bytes, bool anywhere) {
    uint64_t released = trim_pages(pool, bytes, false);
    if (anywhere && released < bytes && pool->apart_regions)
        released += trim_pages(pool, bytes - released, true);
    return released;
}
