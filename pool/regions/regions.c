/* Takes regions from the upstream and gives them back. Only one thread at a time asks for a region.
 * A thread that needs one meanwhile waits for growth_lock, and then first searches again for a free
 * block. */
#include "pool/regions/regions.h"

#include "base/numbers.h"
#include "pool/blocks/paging.h"
#include "pool/blocks/region.h"
#include "pool/blocks/slots.h"
#include "pool/blocks/surgery.h"
#include "pool/paging/grow.h"
#include "pool/policy/growth.h"
#include "pool/policy/policy.h"
#include "pool/search/take.h"

/* Adds a region that is one free block. `fence` decides the block's state, as for a freed block:
 * ready, pending, or deferred. */
static enum bfc_status add_region(struct bfc_pool *pool, const struct region *region,
                                  enum block_zone zone, bfc_fence fence) {
    block_index b = region_attach(pool, region, zone);
    if (!b)
        return BFC_NO_HOST_MEMORY;
    struct bfc_pool_stats *stats = pool->stats;
    stats->reserved += region->size;
    stats->peak_reserved = bfc_max(stats->peak_reserved, stats->reserved);
    surgery_make_free(pool, b, fence);
    return BFC_OK;
}

block_index region_idle_block(const struct bfc_pool *pool, const struct region *region) {
    if (!region->size || region->held || region->paged)
        return 0;
    block_index b = pool->blocks[region->head].next;
    const struct block *at = &pool->blocks[b];
    return block_state(at) == BLOCK_READY && block_size(at) == region->size ? b : 0;
}

uint64_t regions_releasable(const struct bfc_pool *pool) {
    uint64_t bytes = 0;
    for (region_index r = 1; r < pool->region_high; r++)
        if (region_idle_block(pool, &pool->regions[r]))
            bytes += pool->regions[r].size;
    return bytes;
}

region_index regions_largest_idle(const struct bfc_pool *pool, bool apart) {
    region_index best = 0;
    for (region_index r = 1; r < pool->region_high; r++)
        if (region_idle_block(pool, &pool->regions[r]) && (apart || !pool->regions[r].apart) &&
            (!best || pool->regions[r].size > pool->regions[best].size))
            best = r;
    return best;
}

static void detach_region(struct bfc_pool *pool, region_index r) {
    struct region *region = &pool->regions[r];
    surgery_unlist(pool, region_idle_block(pool, region));
    pool->stats->ready -= region->size;
    pool->stats->reserved -= region->size;
    pool->taken_to_keep -= bfc_min(pool->taken_to_keep, region->size);
    pool->stats->release_calls++;
    region_detach(pool, r);
    policy_set_plain(pool);
}

/* Gives a region without live blocks back to the upstream; returns its size in bytes. If the
 * upstream refuses, returns 0, and the pool keeps the region as one free block, whose state `fence`
 * decides (add_region). If the host then has no memory for the region's records, the region is
 * leaked. */
static uint64_t release_or_keep(struct bfc_pool *pool, region_index r, bfc_fence fence) {
    struct region gone = pool->regions[r];
    gone.apart = false;
    enum block_zone zone = block_zone(&pool->blocks[pool->blocks[gone.head].next]);
    detach_region(pool, r);
    slots_settle(pool);
    pool->releasing += gone.size;
    pool_leave(pool);
    int error = 0;
    bool went = pool->upstream.release(pool->upstream.context, gone.start, gone.size, &error);
    pool_enter(pool);
    pool->release_error = error;
    pool->releasing -= gone.size;
    if (!went)
        add_region(pool, &gone, zone, fence);
    return went ? gone.size : 0;
}

uint64_t region_release(struct bfc_pool *pool, region_index r) {
    return release_or_keep(pool, r, BFC_NO_FENCE);
}

uint64_t regions_release(struct bfc_pool *pool, uint64_t bytes) {
    uint64_t released = 0;
    region_index r;
    while (released < bytes && (r = regions_largest_idle(pool, true))) {
        uint64_t went = region_release(pool, r);
        if (!went)
            break;
        released += went;
    }
    return released;
}

block_index region_freed_block(const struct bfc_pool *pool, const struct region *region) {
    const struct block *blocks = pool->blocks;
    block_index first = region->size && !region->paged ? blocks[region->head].next : 0;
    for (block_index b = first; b; b = blocks[b].next)
        if (!block_is_free(&blocks[b]) || block_state(&blocks[b]) == BLOCK_AWAITED)
            return 0;
    return first;
}

/* Makes all blocks of the region ready. False: the region must not be given back (held), it
 * consists of pages, or one of its blocks is live or awaited; then nothing has changed. */
static bool ready_up(struct bfc_pool *pool, const struct region *region) {
    block_index first = region->held ? 0 : region_freed_block(pool, region);
    const struct block *blocks = pool->blocks;
    if (!first)
        return false;
    /* A block that becomes ready may merge with its neighbours, so the loop starts again at the
     * region's first block. */
    for (block_index b = first; b;) {
        bool was_ready = block_state(&blocks[b]) == BLOCK_READY;
        if (!was_ready)
            surgery_make_ready(pool, b);
        b = was_ready ? blocks[b].next : blocks[region->head].next;
    }
    return true;
}

static uint64_t release_used(struct bfc_pool *pool, uint64_t bytes) {
    uint64_t released = 0;
    for (region_index r = 1; released < bytes && r < pool->region_high; r++)
        if (ready_up(pool, &pool->regions[r]))
            released += release_or_keep(pool, r, BFC_DEFERRED_FENCE);
    return released;
}

uint64_t bfc_pool_trim_used(struct bfc_pool *pool, uint64_t bytes) {
    uint64_t released = pool->paging ? bfc_pool_trim(pool, bytes) : 0;
    pool_enter(pool);
    if (released < bytes)
        released += release_used(pool, bytes - released);
    pool_leave(pool);
    return released;
}

/* This function drops the lock only while the upstream takes a region back, and each release sets
 * release_error only after it has taken the lock again. So no release of another thread can change
 * release_error between this thread's release and the line that reads it. */
void bfc_pool_release_one(struct bfc_pool *pool, int *error) {
    pool_enter(pool);
    pool->release_error = *error;
    pool->wanted_elsewhere = true;
    settle_completed(pool, FENCES_ALL);
    if (!regions_release(pool, 1))
        release_used(pool, 1);
    *error = pool->release_error;
    pool_leave(pool);
}

/* ---- overflow regions: regions for blocks that have no place in a planned region. One region
 * should hold all such blocks, instead of many regions with one block each ---- */

/* An overflow region can be as large as all blocks without a planned place together, and still not
 * hold them all, because its free memory is scattered. Then the next one is larger, by the size of
 * the new block, but by at most 1 / PIECES. */
#define PIECES 8

/* Whether a region was made for a plan (bfc_pool_add_apart). */
static bool has_planned(const struct bfc_pool *pool) {
    for (region_index r = 1; r < pool->region_high; r++)
        if (pool->regions[r].planned)
            return true;
    return false;
}

/* Returns how many bytes of the region are live or not ready yet. */
static uint64_t bytes_in_use(const struct bfc_pool *pool, const struct region *region) {
    uint64_t bytes = region->size;
    for (block_index b = pool->blocks[region->head].next; b; b = pool->blocks[b].next)
        if (block_state(&pool->blocks[b]) == BLOCK_READY)
            bytes -= block_size(&pool->blocks[b]);
    return bytes;
}

/* Whether one of the regions for blocks without a planned place (overflow regions) is as large as
 * the most bytes that such blocks ever took at one time. Sets `*count` to the number of these
 * regions. */
static bool overflow_is_gathered(const struct bfc_pool *pool, unsigned *count) {
    bool gathered = false;
    *count = 0;
    for (region_index r = 1; r < pool->region_high; r++)
        if (pool->regions[r].overflow) {
            gathered = gathered || pool->regions[r].size >= pool->overflow_wanted;
            ++*count;
        }
    return gathered;
}

/* Returns how many bytes one region needs that holds all blocks without a planned place, and a
 * further block of `size` bytes. */
static uint64_t wanted_with(const struct bfc_pool *pool, uint64_t size) {
    unsigned count;
    uint64_t wanted = size;
    for (region_index r = 1; r < pool->region_high; r++)
        if (pool->regions[r].overflow)
            wanted += bytes_in_use(pool, &pool->regions[r]);
    if (wanted <= pool->overflow_wanted && overflow_is_gathered(pool, &count))
        wanted = pool->overflow_wanted + bfc_min(size, ROUND_DOWN(pool->overflow_wanted / PIECES));
    return bfc_min(wanted, LARGEST_BLOCK);
}

/*
 * Returns the size of the next region, for a block of `size` bytes, where the policy wants `bytes`.
 * That is `bytes`, unless the next region is to be one large overflow region
 * (bfc_pool_gather_overflow has asked for it): then it is overflow_wanted, the most bytes that
 * overflow blocks ever took at one time. With growth `double` and a planned region, each call
 * measures how many they take now, and raises overflow_wanted to that. O(blocks of overflow
 * regions).
 */
static uint64_t overflow_growth(struct bfc_pool *pool, uint64_t size, uint64_t bytes) {
    if (pool->config.growth != BFC_GROWTH_DOUBLE || !has_planned(pool))
        return bytes;
    pool->overflow_wanted = bfc_max(pool->overflow_wanted, wanted_with(pool, size));
    if (pool->gather_overflow)
        bytes = pool->overflow_wanted;
    pool->gather_overflow = false;
    return bytes;
}

static bool may_go(const struct bfc_pool *pool, const struct region *region) {
    return region->overflow && region->size < pool->overflow_wanted &&
           region_idle_block(pool, region);
}

uint64_t bfc_pool_gather_overflow(struct bfc_pool *pool) {
    uint64_t released = 0;
    unsigned count;
    pool_enter(pool);
    bool gathered = overflow_is_gathered(pool, &count);
    for (region_index r = 1; count > 1 && r < pool->region_high; r++)
        if (may_go(pool, &pool->regions[r]))
            released += region_release(pool, r);
    pool->gather_overflow = pool->gather_overflow || (released && !gathered);
    pool_leave(pool);
    return released;
}

struct growth {
    uint64_t size;  /* bytes that the region must have at least */
    uint64_t bytes; /* how many bytes the upstream is asked for next */
    /* whether a free block has room for the request, but the pool grows all the same, so that the
     * wholly free region in which that block lies is not split */
    bool keeping;
    bool planned;
    enum back_off back_off;
    bfc_addr start;
    uint64_t calls;
};

/* Returns the size to ask for after the device has refused `bytes` bytes: half, or nine tenths as
 * TensorFlow's allocator does, rounded up to whole pages or granules, but always at least one page
 * or granule less than `bytes`. With BACK_OFF_ABOVE_SIZE, the rule of policy tf, sizes are not
 * rounded to pages. */
static uint64_t less_than(uint64_t bytes, enum back_off back_off) {
    bool paged = back_off != BACK_OFF_ABOVE_SIZE && bytes > POLICY_PAGE;
    uint64_t unit = paged ? POLICY_PAGE : BFC_GRANULE;
    uint64_t part = back_off == BACK_OFF_BY_HALVES ? bytes / 2 : bytes - bytes / 10;
    return bfc_min(bfc_round_up(part, unit), (bytes - 1) / unit * unit);
}

/* Computes the size to ask for after a refusal. False: there is no smaller size to ask for. */
static bool ask_for_less(struct growth *growth) {
    if (growth->back_off == BACK_OFF_NONE || growth->bytes <= growth->size)
        return false;
    uint64_t less = growth->back_off == BACK_OFF_AT_ONCE
                        ? growth->size
                        : less_than(growth->bytes, growth->back_off);
    if (growth->back_off == BACK_OFF_ABOVE_SIZE && less < growth->size)
        return false;
    growth->bytes = bfc_max(growth->size, less);
    return true;
}

/* Asks the upstream for a region, and after each refusal for a smaller one, as long as
 * growth->back_off allows. Called without the lock. */
static enum bfc_reserve_result reserve_region(struct bfc_pool *pool, struct growth *growth) {
    const struct bfc_upstream *upstream = &pool->upstream;
    enum bfc_reserve_result result;
    do {
        growth->calls++;
        result = upstream->reserve(upstream->context, growth->bytes, &growth->start, &pool->ask);
    } while (result == BFC_REFUSED && ask_for_less(growth));
    return result;
}

/* Computes the size of the next region for the request. False: the limit has no room for it. */
static bool plan_growth(struct bfc_pool *pool, const struct request *request,
                        struct growth *growth) {
    uint64_t size = request_size(request), room = room_below_limit(pool);
    if (size > room)
        return false;
    *growth = (struct growth){
        .size = size,
        .keeping = take_is_kept(pool, request),
    };
    growth->back_off = growth_back_off(pool, size, growth->keeping);
    growth->bytes = growth_next(pool, size, growth->keeping);
    if (growth->back_off == BACK_OFF_NONE)
        return growth->bytes <= room;
    growth->bytes = bfc_min(overflow_growth(pool, size, growth->bytes), room);
    return true;
}

/* Adds the region that the upstream has provided to the pool. If the host has no memory for the
 * region's records, drops the lock and gives the region back. */
static enum bfc_status take_in(struct bfc_pool *pool, const struct growth *growth) {
    const struct region region = {.start = growth->start,
                                  .size = growth->bytes,
                                  .planned = growth->planned,
                                  .overflow = !growth->planned && has_planned(pool)};
    enum block_zone zone = policy_zone(pool, growth->size);
    enum bfc_status status = add_region(pool, &region, zone, BFC_NO_FENCE);
    pool->frees_grown = pool->stats->frees;
    policy_note_surplus(pool);
    if (status == BFC_OK)
        return BFC_OK;
    int error;
    pool_leave(pool);
    pool->upstream.release(pool->upstream.context, growth->start, growth->bytes, &error);
    pool_enter(pool);
    pool->stats->release_calls++;
    return status;
}

/* Asks the upstream for a region of the size in `growth`, or smaller ones. Drops the lock
 * meanwhile. The caller holds growth_lock. */
static enum bfc_status add_growth(struct bfc_pool *pool, struct growth *growth) {
    pool_leave(pool);
    enum bfc_reserve_result result = reserve_region(pool, growth);
    pool_enter(pool);
    pool->stats->reserve_calls += growth->calls;
    pool->stats->refusals += growth->calls - (result != BFC_REFUSED);
    if (result != BFC_RESERVED)
        return result == BFC_REFUSED ? BFC_OUT_OF_MEMORY : BFC_UPSTREAM_FAILED;
    return BFC_OK;
}

static enum bfc_status add_for(struct bfc_pool *pool, const struct request *request,
                               bfc_addr *start) {
    struct growth growth;
    if (!plan_growth(pool, request, &growth))
        return BFC_OUT_OF_MEMORY;
    enum bfc_status status = add_growth(pool, &growth);
    if (status != BFC_OK)
        return status;
    growth_reserved(pool, growth.size, growth.keeping ? growth.bytes : 0);
    *start = growth.start;
    return take_in(pool, &growth);
}

enum bfc_status regions_add_planned(struct bfc_pool *pool, uint64_t bytes, bfc_addr *start) {
    struct growth growth = {
        .size = bytes, .bytes = bytes, .planned = true, .back_off = BACK_OFF_NONE};
    if (!pool->upstream.reserve)
        return BFC_UPSTREAM_FAILED;
    if (bytes > room_below_limit(pool))
        return BFC_OUT_OF_MEMORY;
    enum bfc_status status = add_growth(pool, &growth);
    *start = growth.start;
    return status == BFC_OK ? take_in(pool, &growth) : status;
}

/* Serves the request from the region at `start`, which was just added and is wholly free; or, in a
 * pool that does not keep free blocks sorted, from any free block that fits. */
static bool take_new(struct bfc_pool *pool, bfc_addr start, const struct request *request) {
    if (!pool->rules.exact && take_any(pool, request))
        return true;
    return take_ready(pool, find_holding(pool, start), request);
}

static bool grow_by_region(struct bfc_pool *pool, const struct request *request,
                           enum bfc_status *status) {
    growth_begin(pool, request);
    bool taken = take_any(pool, request);
    *status = BFC_OK;
    /* The loop runs again only if other threads have taken the memory of the new region first. */
    while (!taken && *status == BFC_OK) {
        bfc_addr start;
        *status = add_for(pool, request, &start);
        taken = *status == BFC_OK && take_new(pool, start, request);
    }
    growth_end(pool, request);
    return taken;
}

/* For a pool with pages: grows by a region, because a page call has failed, or because the pool may
 * make and move no pages now (pages_may_grow). If the device is full, gives ready pages back and
 * tries again: these pages cannot be moved to where the request needs them. */
static bool grow_without_pages(struct bfc_pool *pool, const struct request *request,
                               enum bfc_status *status) {
    return grow_by_region(pool, request, status) ||
           (*status == BFC_OUT_OF_MEMORY && pages_trim(pool, request_size(request), true) &&
            grow_by_region(pool, request, status));
}

bool regions_grow(struct bfc_pool *pool, const struct request *request, enum bfc_status *status) {
    *status = BFC_UPSTREAM_FAILED;
    if (growth_is_under_way(pool))
        return false;
    if (!pool->paging)
        return grow_by_region(pool, request, status);
    if (pages_may_grow(pool) && pages_grow(pool, request, status))
        return true;
    return *status == BFC_UPSTREAM_FAILED && pool->upstream.reserve &&
           grow_without_pages(pool, request, status);
}

void regions_end(struct bfc_pool *pool) {
    int error;
    for (region_index r = 1; r < pool->region_high; r++)
        if (pool->regions[r].size && !pool->regions[r].paged)
            pool->upstream.release(pool->upstream.context, pool->regions[r].start,
                                   pool->regions[r].size, &error);
}

uint64_t bfc_pool_trim(struct bfc_pool *pool, uint64_t bytes) {
    pool_enter(pool);
    pool->wanted_elsewhere = true;
    pool->merge_bytes = 0;
    settle_completed(pool, FENCES_ALL);
    uint64_t released = pool->paging ? pages_trim(pool, bytes, true) : 0;
    if (released < bytes)
        released += regions_release(pool, bytes - released);
    growth_trimmed(pool);
    pool_leave(pool);
    return released;
}
