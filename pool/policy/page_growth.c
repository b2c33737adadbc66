/*
 * Growth with pages.
 *
 * Each step costs three calls or more, whatever its size, and what it makes in vain is lost to
 * others. So the steps are a multiple of what was requested, from BFC_GROWTH_SIZE to RAMP_TOP, and
 * beyond that a small part of what is reserved; figures in docs/pages.md.
 *
 * A page that moves twice while the peak stays the same does so in a loop. Calls in each round cost
 * more than memory, so the slack then rises by what moved, up to twice itself.
 */
#include "pool/policy/page_growth.h"

#include "base/numbers.h"
#include "pool/blocks/paging.h"

#define RAMP_TOP (30 * MIB)
#define RAMP_FACTOR 3
#define STEP_PART 36
#define STEP_TOP (80 * MIB)
#define LARGE_STEP_PART 512

static uint64_t down(const struct bfc_pool *pool, uint64_t bytes) {
    return bytes & ~(pool->paging->calls.granule - 1);
}

static uint64_t up(const struct bfc_pool *pool, uint64_t bytes) {
    return down(pool, bfc_add_saturating(bytes, pool->paging->calls.granule - 1));
}

static bool preallocates_pages(const struct bfc_pool *pool) {
    return pool->config.growth == BFC_GROWTH_PREALLOCATE && !pool->preallocated;
}

static uint64_t ramp(const struct bfc_pool *pool) {
    uint64_t most = bfc_min(pool->stats->peak_requested, RAMP_TOP);
    return bfc_min(bfc_max(most * RAMP_FACTOR, pool->config.growth_size), RAMP_TOP);
}

uint64_t page_growth_step(const struct bfc_pool *pool) {
    const struct bfc_pool_config *config = &pool->config;
    if (config->growth == BFC_GROWTH_EXACT)
        return 0;
    if (config->growth == BFC_GROWTH_FIXED)
        return up(pool, config->growth_size);
    if (preallocates_pages(pool))
        return up(pool, config->preallocate);
    uint64_t reserved = pool->stats->reserved;
    uint64_t step = bfc_max(ramp(pool), bfc_min(reserved / STEP_PART, STEP_TOP));
    step = bfc_max(step, reserved / LARGE_STEP_PART);
    return up(pool, bfc_min(step, config->growth_max));
}

/* How far `reserved` may exceed the most that was ever requested. */
static uint64_t allowance(const struct bfc_pool *pool, uint64_t most) {
    uint64_t slack = (uint64_t)((double)most * pool->config.page_slack);
    slack += pool->paging->regret;
    bool by_steps = pool->config.growth == BFC_GROWTH_FIXED || preallocates_pages(pool);
    return bfc_max(slack, by_steps ? page_growth_step(pool) : ramp(pool));
}

uint64_t page_growth_room(const struct bfc_pool *pool, uint64_t bytes) {
    const struct bfc_pool_stats *stats = pool->stats;
    uint64_t most = bfc_max(stats->peak_requested, bfc_add_saturating(stats->requested, bytes));
    uint64_t budget = bfc_add_saturating(most, allowance(pool, most));
    budget = bfc_min(budget, pool->config.gc_threshold);
    return down(pool, bfc_subtract_saturating(budget, stats->reserved + pool->paging->moving));
}

uint64_t page_growth_size(const struct bfc_pool *pool, uint64_t bytes) {
    uint64_t most = bfc_max(pool->config.page_most, pool->paging->calls.granule);
    uint64_t pieces = bytes / most + (bytes % most != 0);
    return up(pool, bytes / bfc_max(pieces, 1));
}

bool page_growth_settles(struct bfc_pool *pool) {
    struct paging *paging = pool->paging;
    uint64_t most = pool->stats->peak_requested, again = 0;
    for (uint32_t i = 0; i < paging->on_hand.count; i++)
        if (paging->on_hand.all[i].moved_at == most)
            again += paging->on_hand.all[i].bytes;
    uint64_t cap = (uint64_t)((double)most * pool->config.page_slack);
    uint64_t before = paging->regret;
    paging->regret = bfc_max(before, bfc_min(before + again, cap));
    return paging->regret > before;
}

void page_growth_made(struct bfc_pool *pool) {
    pool->preallocated = true;
}
