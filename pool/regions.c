/*
 * Regions: taking them in, growing, giving them back.
 *
 * The source is never called under the pool's lock. One thread at a time asks for a region: another
 * that misses meanwhile waits for its turn and looks again before it asks for more.
 *
 * Growth `double`: the step doubles with each region as long as that is worth it, namely up to
 * RAMP_TOP, and then stays a small part of what is reserved already, so that what is reserved in
 * vain is a small part too (figures in docs/pool-experiments.md).
 */
#include "pool/internal.h"

/* `double` reaches this step by doubling alone... */
#define RAMP_TOP ((uint64_t)32 * MIB)
/* ...and from there takes a 256th of what is reserved, at least; */
#define STEP_PART 256
/* or room for this many blocks like the one asked for, if that is at most a 32nd of it. */
#define STEP_BLOCKS 4
#define STEP_BLOCKS_PART 32

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t round_down(uint64_t bytes) {
    return bytes & ~(BFC_GRANULE - 1);
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

enum bfc_status region_add(struct bfc_pool *pool, bfc_addr start, uint64_t size) {
    if (!chapters_make_room(&pool->chapters))
        return BFC_NO_HOST_MEMORY;
    block_index b = slot_take(pool);
    region_index r = b ? take_region_record(pool) : 0;
    if (!r) {
        if (b)
            slot_vacate(pool, b);
        return BFC_NO_HOST_MEMORY;
    }
    pool->regions[r] = (struct region){.start = start, .size = size};
    pool->blocks[b] =
        (struct block){.tagged = start, .last = (uint32_t)((size >> GRANULE_BITS) - 1)};
    pool->chapter_of[b] = chapters_add(&pool->chapters, pool->blocks, b, 1, r);
    map_insert(&pool->map, pool->blocks, b);
    struct bfc_pool_stats *stats = pool->stats;
    stats->regions++;
    stats->reserved += size;
    stats->peak_reserved = larger(stats->peak_reserved, stats->reserved);
    pool_make_free(pool, b, BFC_NO_MARK);
    return BFC_OK;
}

/* The block that is the whole region, free and clean; or 0. */
static block_index idle_block(const struct bfc_pool *pool, const struct region *region) {
    if (!region->size || region->held)
        return 0;
    block_index b = map_find(&pool->map, pool->blocks, region->start);
    const struct block *at = &pool->blocks[b];
    return block_state(at) == BLOCK_CLEAN && block_size(at) == region->size ? b : 0;
}

uint64_t regions_releasable(const struct bfc_pool *pool) {
    uint64_t bytes = 0;
    for (region_index r = 1; r < pool->region_high; r++)
        if (idle_block(pool, &pool->regions[r]))
            bytes += pool->regions[r].size;
    return bytes;
}

static region_index largest_idle(const struct bfc_pool *pool) {
    region_index best = 0;
    for (region_index r = 1; r < pool->region_high; r++)
        if (idle_block(pool, &pool->regions[r]) &&
            (!best || pool->regions[r].size > pool->regions[best].size))
            best = r;
    return best;
}

/* When the last region went, the arrays that were long because of many regions start afresh. */
static void forget_region_records(struct bfc_pool *pool) {
    pool->region_high = 1;
    pool->vacant_region = 0;
    host_array_give_back(&pool->region_memory, sizeof(struct region));
    pool->chapters.high = 1;
    pool->chapters.vacant = 0;
    host_array_give_back(&pool->chapters.memory, sizeof(struct chapter));
}

static void detach(struct bfc_pool *pool, region_index r) {
    struct region *region = &pool->regions[r];
    block_index b = idle_block(pool, region);
    pool_unbin(pool, b);
    chapters_remove(&pool->chapters, pool->blocks, pool->chapter_of[b]);
    map_remove(&pool->map, pool->blocks, b);
    slot_vacate(pool, b);
    pool->stats->clean -= region->size;
    pool->stats->reserved -= region->size;
    pool->stats->regions--;
    pool->stats->release_calls++;
    vacate_region_record(pool, r);
    if (!pool->stats->regions)
        forget_region_records(pool);
}

uint64_t regions_release(struct bfc_pool *pool, uint64_t bytes) {
    uint64_t released = 0;
    while (released < bytes) {
        region_index r = largest_idle(pool);
        if (!r)
            break;
        struct region gone = pool->regions[r];
        detach(pool, r);
        slots_settle(pool);
        pool->releasing += gone.size;
        pool_leave(pool);
        pool->source.release(pool->source.context, gone.start, gone.size);
        pool_enter(pool);
        pool->releasing -= gone.size;
        released += gone.size;
    }
    return released;
}

/* The step of `double`, raised until it holds the block or has reached its top. */
static uint64_t raised_step(const struct bfc_pool *pool, uint64_t size) {
    uint64_t step = pool->step, top = smaller(RAMP_TOP, pool->config.growth_max);
    while (step < size && step < top)
        step *= 2;
    return step;
}

static uint64_t double_bytes(const struct bfc_pool *pool, uint64_t size) {
    uint64_t reserved = pool->stats->reserved, step = raised_step(pool, size);
    step = larger(step, reserved / STEP_PART);
    step = larger(step, smaller(size * STEP_BLOCKS, reserved / STEP_BLOCKS_PART));
    return round_down(larger(size, smaller(step, pool->config.growth_max)));
}

/* Bytes of the next region for a block of `size`, before the limit and the device have their say.
 */
static uint64_t growth_bytes(const struct bfc_pool *pool, uint64_t size) {
    const struct bfc_pool_config *config = &pool->config;
    if (config->growth == BFC_GROWTH_EXACT)
        return size;
    if (config->growth == BFC_GROWTH_FIXED)
        return larger(size, round_down(config->growth_size));
    if (config->growth == BFC_GROWTH_PREALLOCATE && !pool->preallocated)
        return larger(size, round_down(config->preallocate));
    return double_bytes(pool, size);
}

static void raise_step(struct bfc_pool *pool, uint64_t size) {
    uint64_t top = smaller(RAMP_TOP, pool->config.growth_max);
    pool->step = raised_step(pool, size);
    if (pool->step < top)
        pool->step *= 2;
    pool->preallocated = true;
}

static uint64_t room_below_limit(const struct bfc_pool *pool) {
    uint64_t limit = round_down(pool->config.limit);
    uint64_t taken = pool->stats->reserved + pool->releasing;
    return limit > taken ? limit - taken : 0;
}

/* The next smaller request after a refusal: 0.9 of it, and at least a granule less. */
static uint64_t back_off(uint64_t bytes, uint64_t size) {
    uint64_t less = round_down(bytes - bytes / 10 + BFC_GRANULE - 1);
    return larger(size, smaller(less, bytes - BFC_GRANULE));
}

/* Asks the source, backing off down to `size`. Without the lock. */
static enum bfc_reserve_result reserve(const struct bfc_source *source, uint64_t size,
                                       uint64_t *bytes, bfc_addr *start, uint64_t *calls) {
    for (;;) {
        ++*calls;
        enum bfc_reserve_result result = source->reserve(source->context, *bytes, start);
        if (result != BFC_REFUSED || *bytes <= size)
            return result;
        *bytes = back_off(*bytes, size);
    }
}

/* Takes one region of at least `size`, with the growth turn; drops the lock meanwhile. */
static enum bfc_status add_for(struct bfc_pool *pool, uint64_t size) {
    uint64_t room = room_below_limit(pool), calls = 0;
    if (size > room)
        return BFC_OUT_OF_MEMORY;
    uint64_t bytes = smaller(smaller(growth_bytes(pool, size), room), LARGEST_BLOCK);
    bfc_addr start = 0;
    pool_leave(pool);
    enum bfc_reserve_result result = reserve(&pool->source, size, &bytes, &start, &calls);
    pool_enter(pool);
    pool->stats->reserve_calls += calls;
    pool->stats->refusals += calls - (result != BFC_REFUSED);
    if (result != BFC_RESERVED)
        return result == BFC_REFUSED ? BFC_OUT_OF_MEMORY : BFC_SOURCE_FAILED;
    raise_step(pool, size);
    enum bfc_status status = region_add(pool, start, bytes);
    if (status != BFC_OK) {
        pool_leave(pool);
        pool->source.release(pool->source.context, start, bytes);
        pool_enter(pool);
        pool->stats->release_calls++;
    }
    return status;
}

bool regions_grow(struct bfc_pool *pool, const struct request *request, enum bfc_status *status) {
    pool_leave(pool);
    pthread_mutex_lock(&pool->growth_turn);
    pool_enter(pool);
    bool taken = pool_take(pool, request);
    *status = BFC_OK;
    /* More than once round only if other threads took what the new region brought. */
    while (!taken && *status == BFC_OK) {
        *status = add_for(pool, request_size(request));
        taken = pool_take(pool, request);
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
