/*
 * Computes how large the next region is, from the policy and BFC_GROWTH.
 *
 * With policy bfc and growth `double`, the size of the next region (the step) doubles with each
 * region up to RAMP_TOP. Beyond that it is a small part of the reserved bytes, so that little is
 * reserved in vain. A request above the step gets a region of just its own size, because a larger
 * region might take memory of the device that a later large request needs.
 */
#include "pool/policy/growth.h"

#include "base/numbers.h"
#include "pool/blocks/whole.h"
#include "pool/policy/policy.h"

/* With growth `double`, the size of the next region (the step) doubles up to this many bytes. */
#define RAMP_TOP ((uint64_t)32 * MIB)
/* The size of the next region (the step) is at least 1 / STEP_PART of the reserved bytes. */
#define STEP_PART 256
/* A request that is not larger than the step may get a region above the step, with room for up to
 * STEP_BLOCKS requests of its size, as long as that is at most 1 / STEP_BLOCKS_PART of the reserved
 * bytes. */
#define STEP_BLOCKS 4
#define STEP_BLOCKS_PART 5

/* Once other jobs have asked for memory: a request is not cut from a wholly free region if growing
 * for it takes at most 1 / WANTED_PART of that region's size. */
#define WANTED_PART 2
/* A pool counts as idle if its live blocks use at most 1 / IDLE_PART of the reserved bytes. */
#define IDLE_PART 16
/* An idle pool may take new regions in order not to split wholly free ones, as long as the regions
 * taken for that purpose have at most 1 / IDLE_KEEP_PART of the reserved bytes. */
#define IDLE_KEEP_PART 8
/* In a pool that is not idle, the regions that were taken in order not to split wholly free ones
 * may have at most 1 / BUSY_KEEP_PART of the reserved bytes. */
#define BUSY_KEEP_PART 192
/* A pool that is not idle takes a new region instead of splitting a wholly free one only if the
 * free one has at least 1 / BUSY_REGION_PART of the reserved bytes. Once other jobs have asked for
 * memory, BUSY_REGION_PART, BUSY_KEEP_PART and IDLE_KEEP_PART no longer apply. */
#define BUSY_REGION_PART 4

#define PYTORCH_SMALL_SEGMENT (2 * MIB)
#define PYTORCH_MIDDLE (10 * MIB)
#define PYTORCH_MIDDLE_SEGMENT (20 * MIB)

/* Returns the size with which the sizes of regions begin to grow: with policy tf and growth
 * `preallocate` the size that is preallocated, otherwise growth_size. */
uint64_t growth_first_step(const struct bfc_pool *pool) {
    const struct bfc_pool_config *config = &pool->config;
    bool whole = config->policy == BFC_POLICY_TF && config->growth == BFC_GROWTH_PREALLOCATE;
    uint64_t step = whole ? config->preallocate : config->growth_size;
    return bfc_max(ROUND_DOWN(step), BFC_GRANULE);
}

static uint64_t wanted_step(const struct bfc_pool *pool, uint64_t size) {
    uint64_t reserved = pool->stats->reserved;
    uint64_t step = bfc_max(pool->step, reserved / STEP_PART);
    if (size > step)
        return size;
    uint64_t blocks = bfc_min(STEP_BLOCKS, reserved / STEP_BLOCKS_PART / size);
    step = bfc_max(step, blocks * size);
    return bfc_max(size, bfc_min(step, pool->config.growth_max));
}

/* Rounds the size of a region up to what the device has to provide, unless it is growth_max. */
static uint64_t round_step(const struct bfc_pool *pool, uint64_t step) {
    return step == pool->config.growth_max ? step : growth_on_device(step);
}

static uint64_t bfc_growth(const struct bfc_pool *pool, uint64_t size) {
    return round_step(pool, wanted_step(pool, size));
}

/* Doubles pool->step, from which the size of the next region is computed, unless it has reached
 * LARGEST_BLOCK already. So it cannot overflow. */
static void double_step(struct bfc_pool *pool) {
    if (pool->step < LARGEST_BLOCK)
        pool->step *= 2;
}

static uint64_t tf_growth(struct bfc_pool *pool, uint64_t size) {
    pool->step_raised = pool->step < size;
    while (pool->step < bfc_min(size, LARGEST_BLOCK))
        double_step(pool);
    return pool->step;
}

static uint64_t pytorch_growth(uint64_t size) {
    if (size <= PYTORCH_SMALL)
        return PYTORCH_SMALL_SEGMENT;
    return size < PYTORCH_MIDDLE ? PYTORCH_MIDDLE_SEGMENT : bfc_round_up(size, 2 * MIB);
}

/* Returns the size of the next region by the policy's own rule, which applies with growth `double`,
 * and with `preallocate` for all but the preallocated region. */
static uint64_t own_growth(struct bfc_pool *pool, uint64_t size) {
    if (pool->config.policy == BFC_POLICY_TF)
        return tf_growth(pool, size);
    if (pool->config.policy == BFC_POLICY_PYTORCH)
        return pytorch_growth(size);
    return bfc_growth(pool, size);
}

/* Whether the next region is the preallocated one. A region for small blocks never is. */
static bool is_preallocating(const struct bfc_pool *pool, uint64_t size) {
    return pool->config.growth == BFC_GROWTH_PREALLOCATE && !pool->preallocated &&
           policy_zone(pool, size) == ZONE_LARGE;
}

static uint64_t wanted_growth(struct bfc_pool *pool, uint64_t size) {
    const struct bfc_pool_config *config = &pool->config;
    if (config->growth == BFC_GROWTH_EXACT)
        return size;
    if (config->growth == BFC_GROWTH_FIXED)
        return bfc_max(size, config->growth_size);
    if (is_preallocating(pool, size))
        return bfc_max(size, config->preallocate);
    return own_growth(pool, size);
}

/* Returns the size of a region that is taken so that a wholly free region need not be split. With
 * policies bfc and tf it is at most RAMP_TOP, unless the request is larger. Otherwise the new
 * region could be as large as the one that it spares. */
static uint64_t growth_to_keep(struct bfc_pool *pool, uint64_t size) {
    const struct bfc_pool_config *config = &pool->config;
    bool doubles =
        config->policy != BFC_POLICY_PYTORCH &&
        (config->growth == BFC_GROWTH_DOUBLE || config->growth == BFC_GROWTH_PREALLOCATE);
    uint64_t most = config->policy == BFC_POLICY_BFC ? config->growth_max : UINT64_MAX;
    uint64_t step = bfc_max(size, bfc_min(bfc_min(pool->step, RAMP_TOP), most));
    return doubles ? round_step(pool, step) : wanted_growth(pool, size);
}

/* Whether the pool can afford to take a region of `step` bytes so that a wholly free one of
 * `region` bytes is not split. It cannot once the device has refused memory. */
static bool is_affordable(const struct bfc_pool *pool, uint64_t region, uint64_t step) {
    uint64_t reserved = pool->stats->reserved;
    bool idle = pool->stats->in_use <= reserved / IDLE_PART;
    if (pool->stats->refusals || (!idle && region < reserved / BUSY_REGION_PART))
        return false;
    return pool->taken_to_keep + step <= reserved / (idle ? IDLE_KEEP_PART : BUSY_KEEP_PART);
}

bool growth_keeps(struct bfc_pool *pool, uint64_t size, uint64_t region) {
    uint64_t step = growth_to_keep(pool, size);
    uint64_t part = pool->wanted_elsewhere ? WANTED_PART : WHOLE_PART;
    if (region / WHOLE_PART < size || region / part < step)
        return false;
    return pool->wanted_elsewhere || is_affordable(pool, region, step);
}

/* A request below max_split may not be served from blocks of max_split bytes or more; so for such a
 * request lowers `bytes`, the size of the next region, below max_split. Policy pytorch keeps its
 * sizes of regions. */
static uint64_t below_max_split(const struct bfc_pool *pool, uint64_t size, uint64_t bytes) {
    uint64_t most = pool->config.max_split;
    if (pool->config.policy == BFC_POLICY_PYTORCH || size >= most || bytes < most)
        return bytes;
    return bfc_max(size, (most - 1) / POLICY_PAGE * POLICY_PAGE);
}

/* Returns the size of the next region: `bytes`, or just `size` if the user's own split rules would
 * not split a region of `bytes`, so that the rest of it would be wasted. Growth `fixed`, and
 * policies other than bfc, always keep `bytes`. */
static uint64_t unless_unsplit(const struct bfc_pool *pool, uint64_t size, uint64_t bytes) {
    bool own = pool->config.policy != BFC_POLICY_BFC || pool->config.growth == BFC_GROWTH_FIXED;
    return !own && !pool->rules.cuts_all && !policy_splits(pool, size, bytes) ? size : bytes;
}

uint64_t growth_next(struct bfc_pool *pool, uint64_t size, bool keeping) {
    uint64_t wanted = keeping ? growth_to_keep(pool, size)
                              : bfc_max(wanted_growth(pool, size), pool->merge_bytes);
    uint64_t bytes = bfc_min(wanted, LARGEST_BLOCK);
    bytes = bfc_max(size, ROUND_DOWN(below_max_split(pool, size, bytes)));
    return unless_unsplit(pool, size, bytes);
}

enum back_off growth_back_off(const struct bfc_pool *pool, uint64_t size, bool keeping) {
    if (keeping)
        return BACK_OFF_AT_ONCE;
    if (pool->config.policy == BFC_POLICY_TF && pool->config.growth == BFC_GROWTH_DOUBLE)
        return BACK_OFF_ABOVE_SIZE;
    if (pool->config.policy == BFC_POLICY_PYTORCH && !is_preallocating(pool, size))
        return BACK_OFF_NONE;
    bool by_double =
        pool->config.policy == BFC_POLICY_BFC && pool->config.growth == BFC_GROWTH_DOUBLE;
    return by_double ? BACK_OFF_BY_HALVES : BACK_OFF_TO_SIZE;
}

/* With policy bfc, doubles pool->step, from which the size of the next region is computed, until it
 * is at least `size`, and then once more. Stops as soon as it has reached RAMP_TOP or
 * growth_max. */
static void raise_step(struct bfc_pool *pool, uint64_t size) {
    uint64_t top = bfc_min(RAMP_TOP, pool->config.growth_max);
    while (pool->step < size && pool->step < top)
        pool->step *= 2;
    if (pool->step < top)
        pool->step *= 2;
}

void growth_reserved(struct bfc_pool *pool, uint64_t size, uint64_t to_keep) {
    pool->preallocated |= is_preallocating(pool, size);
    pool->taken_to_keep += to_keep;
    if (!to_keep)
        pool->merge_bytes = 0;
    if (pool->config.policy == BFC_POLICY_BFC)
        raise_step(pool, size);
    else if (!to_keep && pool->config.policy == BFC_POLICY_TF && !pool->step_raised)
        double_step(pool);
}

void growth_trimmed(struct bfc_pool *pool) {
    uint64_t least = growth_first_step(pool);
    while (pool->config.policy == BFC_POLICY_TF && pool->step / 2 >= least &&
           pool->step / 2 > pool->stats->reserved)
        pool->step /= 2;
}
