#include "base/numbers.h"
#include "pool/blocks/region.h"
#include "pool/blocks/surgery.h"
#include "pool/pages.h"
#include "pool/paging/victims.h"
#include "pool/policy/growth.h"
#include "pool/policy/policy.h"
#include "pool/regions/regions.h"

/* the most free neighbours that are summed up on each side of a block */
#define NEIGHBOURS_MOST 64

static uint64_t free_bytes_from(const struct bfc_pool *pool, block_index b, bool onwards) {
    const struct block *blocks = pool->blocks;
    uint64_t bytes = 0;
    for (int i = 0; i < NEIGHBOURS_MOST && block_is_free(&blocks[b]); i++) {
        bytes += block_size(&blocks[b]);
        b = onwards ? blocks[b].next : blocks[b].previous;
    }
    return bytes;
}

static bfc_fence fence_of(const struct bfc_pool *pool, block_index b) {
    enum block_state state = block_state(&pool->blocks[b]);
    if (state == BLOCK_LIVE)
        return block_handed_out(pool, b);
    if (state == BLOCK_DEFERRED || state == BLOCK_AWAITED)
        return BFC_DEFERRED_FENCE;
    return state == BLOCK_PENDING ? pool->details[b].fence : BFC_NO_FENCE;
}

static void describe_block(const struct bfc_pool *pool, block_index b,
                           struct bfc_block_info *info) {
    const struct block *at = &pool->blocks[b];
    const struct region *region = region_of(pool, b);
    bool live = block_state(at) == BLOCK_LIVE;
    *info = (struct bfc_block_info){
        .start = block_start(at),
        .size = block_size(at),
        .requested = live ? block_requested(pool, b) : 0,
        .id = live ? block_id(at) : 0,
        .free_before = free_bytes_from(pool, at->previous, false),
        .free_after = free_bytes_from(pool, at->next, true),
        .region_start = region->start,
        .region_size = region->size,
        .fence = fence_of(pool, b),
        .live = live,
        .bare = block_state(at) == BLOCK_BARE,
        .paged = region->paged,
        .planned = region->planned && !region->bare,
    };
}

bfc_fence bfc_pool_last_pending(struct bfc_pool *pool) {
    pool_enter(pool);
    block_index b = pool->pending_list.newest;
    bfc_fence fence = b ? pool->details[b].fence : BFC_NO_FENCE;
    pool_leave(pool);
    return fence;
}

bool bfc_pool_find(struct bfc_pool *pool, bfc_addr address, struct bfc_block_info *block) {
    pool_enter(pool);
    block_index b = find_holding(pool, address);
    if (b)
        describe_block(pool, b, block);
    pool_leave(pool);
    return b;
}

/* Removes the pending blocks of a region from the bins of pending blocks, so that no allocation
 * takes them before their fences are complete. */
static void bar_pending(struct bfc_pool *pool, const struct region *region) {
    for (block_index b = pool->pending_list.oldest; b; b = pool->details[b].newer)
        if (region_of(pool, b) == region)
            bins_remove(&pool->pending, pool->blocks, b, false);
}

void bfc_pool_share_region(struct bfc_pool *pool, bfc_addr address, bool held) {
    pool_enter(pool);
    block_index b = find_holding(pool, address);
    if (b) {
        struct region *region = region_of(pool, b);
        if (!region->shared) {
            if (pool->config.reuse_pending && !region->apart)
                bar_pending(pool, region);
            pool->shared_regions++;
        }
        region->shared = true;
        region->held = held;
    }
    pool_leave(pool);
}

static block_index larger_of(const struct bfc_pool *pool, block_index a, block_index b) {
    if (!a || !b)
        return a ? a : b;
    return block_size(&pool->blocks[a]) < block_size(&pool->blocks[b]) ? b : a;
}

static block_index largest_in(const struct bfc_pool *pool, const struct bins *bins) {
    if (bins->is_sorted)
        return larger_of(pool, sorted_largest(bins->root, pool->blocks, ZONE_LARGE),
                         sorted_largest(bins->root, pool->blocks, ZONE_SMALL));
    block_index largest = 0;
    /* The largest block is in the highest bin that is not empty. The blocks of a bin are not sorted
     * by size, so all blocks of this bin are compared. */
    for (block_index b = bins_walk(bins, pool->blocks, 0, 1); b; b = pool->blocks[b].after)
        largest = larger_of(pool, largest, b);
    return largest;
}

static block_index largest_block(const struct bfc_pool *pool) {
    const struct bins *all[] = {&pool->ready, &pool->apart, &pool->small, &pool->whole};
    block_index largest = 0;
    for (int i = 0; i < 4; i++)
        largest = larger_of(pool, largest, largest_in(pool, all[i]));
    for (block_index b = pool->pending_list.oldest; b; b = pool->details[b].newer)
        largest = larger_of(pool, largest, b);
    return largest;
}

static uint64_t largest_free(const struct bfc_pool *pool) {
    block_index b = largest_block(pool);
    return b ? block_size(&pool->blocks[b]) : 0;
}

/* Returns the largest request in bytes for which the largest free block has room. If it has
 * BFC_LARGE bytes or more it must start at a multiple of BFC_ALIGNMENT, so the bytes before that
 * multiple do not count; for smaller requests the result may be too low by as much. */
static uint64_t largest_room(const struct bfc_pool *pool) {
    block_index b = largest_block(pool);
    uint64_t lead = b ? block_lead(pool, b, LARGE_GRANULES) << BFC_GRANULE_BITS : 0;
    return bfc_subtract_saturating(b ? block_size(&pool->blocks[b]) : 0, lead);
}

static uint64_t ready_from(const struct bfc_pool *pool, const struct bins *bins, uint64_t bytes) {
    uint64_t granules = bytes / BFC_GRANULE + (bytes % BFC_GRANULE != 0), sum = 0;
    for (block_index b = 0;
         granules <= UINT32_MAX && (b = bins_walk(bins, pool->blocks, b, granules));)
        sum += block_size(&pool->blocks[b]);
    return sum;
}

uint64_t bfc_pool_ready_below(struct bfc_pool *pool, uint64_t bytes) {
    pool_enter(pool);
    const struct bins *all[] = {&pool->ready, &pool->apart, &pool->small, &pool->whole};
    uint64_t below = pool->stats->ready;
    for (int i = 0; i < 4; i++)
        below -= ready_from(pool, all[i], bytes);
    pool_leave(pool);
    return below;
}

void bfc_pool_read_stats(struct bfc_pool *pool, struct bfc_pool_stats *stats) {
    pool_enter(pool);
    settle_completed(pool, FENCES_ALL);
    pool->stats->largest_free = largest_free(pool);
    *stats = *pool->stats;
    /* `sequence` is odd under the lock, to tell readers without the lock that the counters may be
     * changing. The copy does not change any more, so its number must be even. */
    stats->sequence++;
    pool_leave(pool);
}

uint64_t bfc_pool_least_growth(struct bfc_pool *pool, uint64_t bytes) {
    uint64_t least = bytes;
    pool_enter(pool);
    if (bytes <= LARGEST_BLOCK && growth_back_off(pool, bytes, false) == BACK_OFF_NONE)
        least = growth_next(pool, policy_round(pool, bytes), false);
    pool_leave(pool);
    return least;
}

static void add_regions(const struct bfc_pool *pool, struct bfc_pool_room *room) {
    for (region_index r = 1; r < pool->region_high; r++)
        if (region_freed_block(pool, &pool->regions[r])) {
            room->reserved += pool->regions[r].size;
            room->on_device += growth_on_device(pool->regions[r].size);
        }
}

void bfc_pool_read_room(struct bfc_pool *pool, struct bfc_pool_room *room) {
    *room = (struct bfc_pool_room){0};
    if (pool->paging)
        bfc_pool_hold_pages(pool);
    pool_enter(pool);
    settle_completed(pool, FENCES_ALL);
    add_regions(pool, room);
    room->largest = largest_room(pool);
    if (pool->paging) {
        uint64_t pages = victims_ready(pool) + victims_to_come(pool);
        room->reserved += pages;
        room->on_device += pages;
        /* pages can be mapped next to each other, so all of them together can serve one request */
        room->largest = bfc_max(room->largest, pages);
    }
    room->releasing = pool->releasing;
    pool_leave(pool);
    if (pool->paging)
        bfc_pool_let_pages(pool);
}

void bfc_pool_visit(struct bfc_pool *pool,
                    void (*visit)(void *context, const struct bfc_block_info *block),
                    void *context) {
    struct bfc_block_info info = {.start = 0};
    pool_enter(pool);
    for (node_index a; (a = address_index_from(&pool->index, info.start));) {
        for (block_index b = pool->blocks[pool->index.nodes[a].block].next; b;
             b = pool->blocks[b].next) {
            describe_block(pool, b, &info);
            if (!info.bare)
                visit(context, &info);
        }
        info.start += info.size;
    }
    pool_leave(pool);
}

void bfc_pool_take_notes(struct bfc_pool *pool, struct bfc_pool_note *notes, uint64_t most) {
    pool_enter(pool);
    pool->notes_end = (char *)(notes + most);
    pool->notes_wanted = pool->notes_left = most * sizeof *notes;
    pool_leave(pool);
}

uint64_t bfc_pool_notes(struct bfc_pool *pool) {
    pool_enter(pool);
    uint64_t bytes = pool->notes_wanted - pool->notes_left;
    pool_leave(pool);
    return bytes / sizeof(struct bfc_pool_note);
}
