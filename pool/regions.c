/*
 * Regions: taking them in, growing, giving them back.
 *
 * The source is never called under the pool's lock. One thread at a time asks for a region: another
 * that misses meanwhile waits for its turn and looks again before it asks for more.
 */
#include "pool/internal.h"

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t round_down(const struct bfc_pool *pool, uint64_t bytes) {
    return bytes & ~(pool->rules.unit - 1);
}

static region_index take_region_record(struct bfc_pool *pool) {
    region_index r = pool->vacant_region;
    if (r) {
        pool->vacant_region = (region_index)pool->regions[r].start;
        return r;
    }
    uint64_t bytes = ((uint64_t)pool->region_high + 1) * sizeof(struct region);
    if (!host_array_commit(&pool->region_memory, bytes))
        return 0;
    return pool->region_high++;
}

static void vacate_region_record(struct bfc_pool *pool, region_index r) {
    pool->regions[r] = (struct region){.start = pool->vacant_region};
    pool->vacant_region = r;
}

enum bfc_status region_add(struct bfc_pool *pool, bfc_addr start, uint64_t size,
                           enum block_zone zone) {
    block_index head = slot_take(pool), b = head ? slot_take(pool) : 0;
    region_index r = b ? take_region_record(pool) : 0;
    if (r) {
        pool->blocks[head] = (struct block){.tagged = start, .previous = r, .next = b};
        block_set_state(&pool->blocks[head], BLOCK_HEAD);
    }
    if (!r || !anchors_add(&pool->anchors, &pool->blocks[head], head, r)) {
        if (r)
            vacate_region_record(pool, r);
        if (b)
            slot_vacate(pool, b);
        if (head)
            slot_vacate(pool, head);
        return BFC_NO_HOST_MEMORY;
    }
    pool->regions[r] = (struct region){.start = start, .size = size, .head = head};
    pool->blocks[b] = (struct block){
        .tagged = start, .last = (uint32_t)((size >> pool->granule_bits) - 1), .previous = head};
    block_set_zone(&pool->blocks[b], zone);
    if (is_anchor(b))
        anchors_add(&pool->anchors, &pool->blocks[b], b, r);
    struct bfc_pool_stats *stats = pool->stats;
    stats->regions++;
    stats->reserved += size;
    stats->peak_reserved = larger(stats->peak_reserved, stats->reserved);
    pool_make_free(pool, b, BFC_NO_MARK);
    return BFC_OK;
}

block_index region_idle_block(const struct bfc_pool *pool, const struct region *region) {
    if (!region->size || region->held)
        return 0;
    block_index b = pool->blocks[region->head].next;
    const struct block *at = &pool->blocks[b];
    return block_state(at) == BLOCK_CLEAN && block_size(pool, at) == region->size ? b : 0;
}

uint64_t regions_releasable(const struct bfc_pool *pool) {
    uint64_t bytes = 0;
    for (region_index r = 1; r < pool->region_high; r++)
        if (region_idle_block(pool, &pool->regions[r]))
            bytes += pool->regions[r].size;
    return bytes;
}

static region_index largest_idle(const struct bfc_pool *pool) {
    region_index best = 0;
    for (region_index r = 1; r < pool->region_high; r++)
        if (region_idle_block(pool, &pool->regions[r]) &&
            (!best || pool->regions[r].size > pool->regions[best].size))
            best = r;
    return best;
}

/* When the last region went, the arrays that were long because of many regions start afresh. */
static void forget_region_records(struct bfc_pool *pool) {
    pool->region_high = 1;
    pool->vacant_region = 0;
    host_array_give_back(&pool->region_memory, sizeof(struct region));
    anchors_reset(&pool->anchors);
}

static void detach(struct bfc_pool *pool, region_index r) {
    struct region *region = &pool->regions[r];
    block_index b = region_idle_block(pool, region);
    pool_unbin(pool, b);
    anchors_remove(&pool->anchors, &pool->blocks[b]);
    anchors_remove(&pool->anchors, &pool->blocks[region->head]);
    slot_vacate(pool, b);
    slot_vacate(pool, region->head);
    pool->shared_regions -= region->shared;
    pool->stats->clean -= region->size;
    pool->stats->reserved -= region->size;
    pool->stats->regions--;
    pool->stats->release_calls++;
    vacate_region_record(pool, r);
    if (!pool->stats->regions)
        forget_region_records(pool);
}

uint64_t region_release(struct bfc_pool *pool, region_index r) {
    struct region gone = pool->regions[r];
    detach(pool, r);
    slots_settle(pool);
    pool->releasing += gone.size;
    pool_leave(pool);
    pool->source.release(pool->source.context, gone.start, gone.size);
    pool_enter(pool);
    pool->releasing -= gone.size;
    return gone.size;
}

uint64_t regions_release(struct bfc_pool *pool, uint64_t bytes) {
    uint64_t released = 0;
    region_index r;
    while (released < bytes && (r = largest_idle(pool)))
        released += region_release(pool, r);
    return released;
}

static uint64_t room_below_limit(const struct bfc_pool *pool) {
    uint64_t limit = round_down(pool, pool->config.limit);
    uint64_t taken = pool->stats->reserved + pool->releasing;
    return limit > taken ? limit - taken : 0;
}

struct growth {
    uint64_t size;  /* least that is of use */
    uint64_t bytes; /* that are asked for */
    uint64_t unit;
    enum back_off back_off;
    bfc_addr start;
    uint64_t calls;
};

/* After a refusal: 0.9 of what was asked for, at least a unit less. False: give up. */
static bool ask_for_less(struct growth *growth) {
    if (growth->back_off == BACK_OFF_NONE || growth->bytes <= growth->size)
        return false;
    uint64_t less = growth->bytes - growth->bytes / 10 + growth->unit - 1;
    less = smaller(less / growth->unit * growth->unit, growth->bytes - growth->unit);
    if (growth->back_off == BACK_OFF_ABOVE_SIZE && less < growth->size)
        return false;
    growth->bytes = larger(growth->size, less);
    return true;
}

/* Asks the source, as often as the back-off says. Without the lock. */
static enum bfc_reserve_result reserve(const struct bfc_source *source, struct growth *growth) {
    enum bfc_reserve_result result;
    do {
        growth->calls++;
        result = source->reserve(source->context, growth->bytes, &growth->start);
    } while (result == BFC_REFUSED && ask_for_less(growth));
    return result;
}

/* The region that the policy wants, if the limit leaves room for it. */
static bool plan_growth(struct bfc_pool *pool, uint64_t size, struct growth *growth) {
    uint64_t room = room_below_limit(pool);
    if (size > room)
        return false;
    *growth = (struct growth){.size = size, .unit = pool->rules.unit};
    growth->back_off = policy_back_off(pool, size);
    growth->bytes = policy_growth(pool, size);
    if (growth->back_off == BACK_OFF_NONE)
        return growth->bytes <= room;
    growth->bytes = smaller(growth->bytes, room);
    return true;
}

/* The region is the pool's, or goes back when the host has no memory to note it. */
static enum bfc_status take_in(struct bfc_pool *pool, const struct growth *growth) {
    enum bfc_status status =
        region_add(pool, growth->start, growth->bytes, policy_zone(pool, growth->size));
    if (status == BFC_OK)
        return BFC_OK;
    pool_leave(pool);
    pool->source.release(pool->source.context, growth->start, growth->bytes);
    pool_enter(pool);
    pool->stats->release_calls++;
    return status;
}

/* Takes one region of at least `size`, with the growth turn; drops the lock meanwhile. */
static enum bfc_status add_for(struct bfc_pool *pool, uint64_t size, bfc_addr *start) {
    struct growth growth;
    if (!plan_growth(pool, size, &growth))
        return BFC_OUT_OF_MEMORY;
    pool_leave(pool);
    enum bfc_reserve_result result = reserve(&pool->source, &growth);
    pool_enter(pool);
    pool->stats->reserve_calls += growth.calls;
    pool->stats->refusals += growth.calls - (result != BFC_REFUSED);
    if (result != BFC_RESERVED)
        return result == BFC_REFUSED ? BFC_OUT_OF_MEMORY : BFC_SOURCE_FAILED;
    policy_grown(pool, size);
    *start = growth.start;
    return take_in(pool, &growth);
}

/* Hands out of the region that was just taken in, whole and free as it is. */
static bool take_new(struct bfc_pool *pool, bfc_addr start, const struct request *request) {
    if (!pool->rules.exact)
        return pool_take(pool, request);
    pool_take_block(pool, pool_find_holding(pool, start), request);
    return true;
}

bool regions_grow(struct bfc_pool *pool, const struct request *request, enum bfc_status *status) {
    pool_leave(pool);
    pthread_mutex_lock(&pool->growth_turn);
    pool_enter(pool);
    bool taken = pool_take(pool, request);
    *status = BFC_OK;
    /* More than once round only if other threads took what the new region brought. */
    while (!taken && *status == BFC_OK) {
        bfc_addr start;
        *status = add_for(pool, request_size(pool, request), &start);
        taken = *status == BFC_OK && take_new(pool, start, request);
    }
    pthread_mutex_unlock(&pool->growth_turn);
    return taken;
}

void regions_forget(struct bfc_pool *pool, bool release) {
    for (region_index r = 1; release && r < pool->region_high; r++)
        if (pool->regions[r].size)
            pool->source.release(pool->source.context, pool->regions[r].start,
                                 pool->regions[r].size);
}

uint64_t bfc_pool_trim(struct bfc_pool *pool, uint64_t bytes) {
    pool_enter(pool);
    marks_settle(pool, MARKS_ALL);
    uint64_t released = regions_release(pool, bytes);
    pool_leave(pool);
    return released;
}
