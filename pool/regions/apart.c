/* Regions that are set apart: only allocations at a given address or with BFC_ALLOCATE_APART take
 * memory there. The ready blocks of these regions are in bins of their own, and the pending blocks
 * in no bin. */

#include "base/numbers.h"
#include "pool/blocks/paging.h"
#include "pool/blocks/region.h"
#include "pool/blocks/surgery.h"
#include "pool/blocks/whole.h"
#include "pool/paging/grow.h"
#include "pool/policy/growth.h"
#include "pool/policy/policy.h"
#include "pool/regions/regions.h"
#include "pool/search/place.h"
#include "pool/search/take.h"

static void set_apart(struct bfc_pool *pool, struct region *region, bool apart) {
    block_index first = pool->blocks[region->head].next;
    if (block_is_whole(&pool->blocks[first]))
        whole_open(pool, first);
    for (block_index b = first; b; b = pool->blocks[b].next) {
        struct bins *from = bins_of(pool, b), *to;
        if (from)
            bins_remove(from, pool->blocks, b, false);
        block_set_bit(&pool->blocks[b], BLOCK_APART_BIT, apart);
        if ((to = bins_of(pool, b)))
            bins_insert(to, pool->blocks, b, false);
    }
    whole_put(pool, first);
    region->apart = apart;
    pool->apart_regions += apart ? 1 : -1u;
    policy_set_plain(pool);
}

bool apart_end(struct bfc_pool *pool) {
    bool any = pool->apart_regions;
    for (region_index r = 1; pool->apart_regions && r < pool->region_high; r++)
        if (pool->regions[r].apart)
            set_apart(pool, &pool->regions[r], false);
    return any;
}

static bool take_in(struct bfc_pool *pool, const struct region *region,
                    const struct request *request) {
    for (block_index b = pool->blocks[region->head].next; b; b = pool->blocks[b].next) {
        if (place_take_in(pool, b, request))
            return true;
    }
    return false;
}

bool apart_take(struct bfc_pool *pool, const struct request *request) {
    for (region_index r = 1; r < pool->region_high; r++)
        if (pool->regions[r].planned && take_in(pool, &pool->regions[r], request))
            return true;
    return false;
}

bool apart_spare(struct bfc_pool *pool, const struct request *request) {
    bool may = request->flags & BFC_ALLOCATE_APART;
    block_index b =
        may && pool->apart_regions ? take_find_in(pool, &pool->apart, request->granules) : 0;
    return b && place_take_in(pool, b, request);
}

bool bfc_pool_set_apart(struct bfc_pool *pool, bfc_addr address, bool apart) {
    pool_enter(pool);
    block_index b = find_holding(pool, address);
    struct region *region = b ? region_of(pool, b) : NULL;
    bool may = region && (!region->paged || region->planned);
    if (may && region->apart != apart)
        set_apart(pool, region, apart);
    pool_leave(pool);
    return may;
}

/* The driver takes memory from the device in whole pages (POLICY_PAGE) for any region larger than
 * half a page. Rounds such a region up to whole pages, so that the pool uses and counts all the
 * memory that the driver takes; except if the limit has no room for the rounded size. */
static enum bfc_status add_plain(struct bfc_pool *pool, uint64_t bytes, bfc_addr *start) {
    uint64_t whole = growth_on_device(bytes);
    bytes = whole <= room_below_limit(pool) ? whole : bytes;
    enum bfc_status status = regions_add_planned(pool, bytes, start);
    if (status == BFC_OK)
        set_apart(pool, region_of(pool, find_holding(pool, *start)), true);
    return status;
}

/* Finds a region of at least `bytes` bytes that was made for an earlier plan, and from which pages
 * were moved or given back since, so that some of its addresses are bare. A region with a lost page
 * (struct page) does not count. 0: there is none. */
static region_index find_stripped(const struct bfc_pool *pool, uint64_t bytes) {
    for (region_index r = 1; r < pool->region_high; r++) {
        const struct region *region = &pool->regions[r];
        if (region->size >= bytes && region->paged && region->planned && region->bare &&
            !has_lost(pool, region->start, region->start + region->size))
            return r;
    }
    return 0;
}

/* Adds a region that consists of pages, for a plan. The pool moves ready pages of other blocks
 * there, and makes as many new ones as are still lacking. If it cannot get enough pages, the pool
 * keeps the region's addresses, and the next call uses them. */
static enum bfc_status add_paged(struct bfc_pool *pool, uint64_t bytes, bfc_addr *start) {
    settle_completed(pool, FENCES_ALL);
    region_index r = find_stripped(pool, bytes);
    enum bfc_status status = r ? BFC_OK : pages_add_planned(pool, bytes, &r);
    if (status != BFC_OK)
        return status;
    if (!pool->regions[r].apart)
        set_apart(pool, &pool->regions[r], true);
    *start = pool->regions[r].start;
    status = pages_back(pool, r);
    if (status != BFC_OK && pool->regions[r].apart)
        set_apart(pool, &pool->regions[r], false);
    return status;
}

enum bfc_status bfc_pool_add_apart(struct bfc_pool *pool, uint64_t bytes, bfc_addr *start,
                                   int *error) {
    if (!bytes || bytes > LARGEST_BLOCK || bytes % BFC_GRANULE)
        return BFC_INVALID_SIZE;
    if (growth_is_under_way(pool))
        return BFC_UPSTREAM_FAILED;
    pool_enter(pool);
    enum bfc_status status = pages_lock_awake(pool);
    *error = pool->ask.error;
    if (status == BFC_OK)
        status = pool->paging && pages_may_grow(pool) ? add_paged(pool, bytes, start)
                                                      : BFC_UPSTREAM_FAILED;
    if (status == BFC_UPSTREAM_FAILED)
        status = add_plain(pool, bytes, start);
    if (status == BFC_OK) {
        pool->overflow_wanted = 0;
        pool->gather_overflow = false;
    }
    pool_leave(pool);
    growth_unlock(pool);
    return status;
}

/* Whether bfc_pool_trim_unplanned, which must not touch the region that holds the address
 * `planned`, may give ready pages back. It may not if that region is open to all allocations,
 * because pages_trim would then give back the region's pages as well. */
static bool pages_may_go(const struct bfc_pool *pool, bfc_addr planned) {
    block_index b = pool->paging && planned ? find_holding(pool, planned) : 0;
    return pool->paging && (!b || region_of(pool, b)->apart);
}

uint64_t bfc_pool_trim_unplanned(struct bfc_pool *pool, bfc_addr planned) {
    uint64_t released = 0;
    pool_enter(pool);
    settle_completed(pool, FENCES_ALL);
    if (pages_may_go(pool, planned))
        released = pages_trim(pool, UINT64_MAX, false);
    for (region_index r = 1; r < pool->region_high; r++) {
        const struct region *region = &pool->regions[r];
        bool is_planned = planned - region->start < region->size;
        if (!is_planned && region_idle_block(pool, region))
            released += region_release(pool, r);
    }
    pool_leave(pool);
    return released;
}
