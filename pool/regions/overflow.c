/* Makes one region for all blocks that have no place in a planned region, instead of many for one
 * block each. */
#include "pool/regions/overflow.h"

#include "base/numbers.h"

/* If one region should have sufficed but its free memory lay in pieces, the next one is larger by
 * up to 1 / PIECES. */
#define PIECES 8

bool overflow_is_possible(const struct bfc_pool *pool) {
    for (region_index r = 1; r < pool->region_high; r++)
        if (pool->regions[r].planned)
            return true;
    return false;
}

/* Returns how many bytes of the region are not ready. */
static uint64_t bytes_in_use(const struct bfc_pool *pool, const struct region *region) {
    uint64_t bytes = region->size;
    for (block_index b = pool->blocks[region->head].next; b; b = pool->blocks[b].next)
        if (block_state(&pool->blocks[b]) == BLOCK_READY)
            bytes -= block_size(&pool->blocks[b]);
    return bytes;
}

bool overflow_is_gathered(const struct bfc_pool *pool, unsigned *count) {
    bool gathered = false;
    *count = 0;
    for (region_index r = 1; r < pool->region_high; r++)
        if (pool->regions[r].overflow) {
            gathered = gathered || pool->regions[r].size >= pool->overflow_wanted;
            ++*count;
        }
    return gathered;
}

/* Returns how many bytes one region for all overflow blocks needs, with a further block of
 * `size`. */
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

uint64_t overflow_growth(struct bfc_pool *pool, uint64_t size, uint64_t bytes) {
    if (pool->config.growth != BFC_GROWTH_DOUBLE || !overflow_is_possible(pool))
        return bytes;
    pool->overflow_wanted = bfc_max(pool->overflow_wanted, wanted_with(pool, size));
    if (pool->gather_overflow)
        bytes = pool->overflow_wanted;
    pool->gather_overflow = false;
    return bytes;
}
