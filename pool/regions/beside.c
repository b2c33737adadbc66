/* Beside a plan's region: many regions, each for one block, become one for all. */
#include "pool/regions/beside.h"

#include "base/numbers.h"
#include "pool/blocks/find.h"
#include "pool/blocks/settle.h"
#include "pool/regions/regions.h"

/* By which what is wanted rises where it should have sufficed, but lay in pieces. */
#define PIECES 8

static bool is_planned(const struct bfc_pool *pool) {
    for (region_index r = 1; r < pool->region_high; r++)
        if (pool->regions[r].size && pool->regions[r].planned)
            return true;
    return false;
}

/* What of the region is not ready. */
static uint64_t bytes_in_use(const struct bfc_pool *pool, const struct region *region) {
    uint64_t bytes = region->size;
    for (block_index b = pool->blocks[region->head].next; b; b = pool->blocks[b].next)
        if (block_state(&pool->blocks[b]) == BLOCK_READY)
            bytes -= block_size(&pool->blocks[b]);
    return bytes;
}

uint64_t beside_growth(struct bfc_pool *pool, uint64_t size, uint64_t bytes) {
    uint64_t wanted = size;
    bool any = false;
    if (pool->config.growth != BFC_GROWTH_DOUBLE || !is_planned(pool))
        return bytes;
    for (region_index r = 1; r < pool->region_high; r++)
        if (pool->regions[r].size && pool->regions[r].beside) {
            any = true;
            wanted += bytes_in_use(pool, &pool->regions[r]);
        }
    if (wanted <= pool->beside_wanted)
        wanted = pool->beside_wanted + bfc_min(size, ROUND_DOWN(pool->beside_wanted / PIECES));
    pool->beside_wanted = bfc_min(wanted, LARGEST_BLOCK);
    return any ? bytes : bfc_max(bytes, pool->beside_wanted);
}

void beside_note(struct bfc_pool *pool, bfc_addr start) {
    struct region *region = region_of(pool, find_holding(pool, start));
    region->beside = !region->planned && is_planned(pool);
}

/* In regions beside, more than was ever wanted of them at a time. */
static uint64_t excess(const struct bfc_pool *pool) {
    uint64_t bytes = 0;
    for (region_index r = 1; r < pool->region_high; r++)
        if (pool->regions[r].size && pool->regions[r].beside)
            bytes += pool->regions[r].size;
    return bytes > pool->beside_wanted ? bytes - pool->beside_wanted : 0;
}

/* Smaller than what would hold all. */
static bool may_go(const struct bfc_pool *pool, const struct region *region) {
    return region->beside && region->size < pool->beside_wanted &&
           region_idle_block(pool, region);
}

uint64_t bfc_pool_excess_beside(struct bfc_pool *pool) {
    pool_enter(pool);
    uint64_t bytes = excess(pool);
    pool_leave(pool);
    return bytes;
}

uint64_t bfc_pool_tidy_beside(struct bfc_pool *pool) {
    uint64_t released = 0;
    pool_enter(pool);
    settle_completed(pool, FENCES_ALL);
    for (region_index r = 1; r < pool->region_high && excess(pool); r++)
        if (may_go(pool, &pool->regions[r]))
            released += region_release(pool, r);
    pool_leave(pool);
    return released;
}
