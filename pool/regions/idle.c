/* Gives idle regions back, that is, regions that one ready block fills. While more than
 * gc_threshold is reserved, gives back those that have been idle for at least the mean age of all
 * idle regions. */

#include "pool/blocks/surgery.h"
#include "pool/paging/grow.h"
#include "pool/policy/growth.h"
#include "pool/regions/regions.h"

static bool is_idle(const struct bfc_pool *pool, region_index r) {
    return region_idle_block(pool, &pool->regions[r]) != 0;
}

static uint64_t age_of(const struct bfc_pool *pool, region_index r) {
    return pool->lookups - pool->regions[r].idle_since;
}

/* Computes the mean of the ages of all idle regions, counted in allocations. It is rounded up, so
 * that a region below the exact mean does not count as old enough. False: no region is idle. */
static bool mean_age(const struct bfc_pool *pool, uint64_t *mean) {
    uint64_t total = 0, count = 0;
    for (region_index r = 1; r < pool->region_high; r++)
        if (is_idle(pool, r)) {
            total += age_of(pool, r);
            count++;
        }
    *mean = count ? (total + count - 1) / count : 0;
    return count;
}

/* Gives back each region that has been idle for at least `age` allocations; returns how many bytes
 * went back. Each release drops the lock, and other threads may then add or remove regions; so a
 * region is checked only when the loop gets to it. */
static uint64_t release_aged(struct bfc_pool *pool, uint64_t age) {
    uint64_t released = 0;
    for (region_index r = 1; r < pool->region_high; r++)
        if (is_idle(pool, r) && age_of(pool, r) >= age)
            released += region_release(pool, r);
    return released;
}

void idle_collect(struct bfc_pool *pool) {
    uint64_t reserved = pool->stats->reserved, threshold = pool->config.gc_threshold, age;
    uint64_t target = reserved > threshold ? reserved - threshold : 0;
    for (uint64_t released = 0; released < target && mean_age(pool, &age);) {
        uint64_t went = release_aged(pool, age);
        if (!went)
            break;
        released += went;
    }
}

/* Returns the largest idle region, or with `largest` false the smallest, of those that have at
 * least `least` bytes; 0: there is none. Of equally large ones, returns the one at the highest
 * address with `largest`, otherwise the one at the lowest. */
static region_index find_idle(const struct bfc_pool *pool, uint64_t least, bool largest) {
    region_index best = 0;
    for (region_index r = 1; r < pool->region_high; r++) {
        const struct region *a = &pool->regions[r], *b = &pool->regions[best];
        bool larger = a->size == b->size ? a->start > b->start : a->size > b->size;
        if (a->size >= least && region_idle_block(pool, a) && (!best || larger == largest))
            best = r;
    }
    return best;
}

bool idle_release_large(struct bfc_pool *pool, uint64_t size) {
    uint64_t most = pool->config.max_split, key = size > most ? size : most, released = 0;
    if (most == UINT64_MAX)
        return false;
    region_index r = find_idle(pool, key, false);
    if (r)
        return region_release(pool, r) != 0;
    while (released < key && (r = find_idle(pool, most, true))) {
        uint64_t went = region_release(pool, r);
        if (!went)
            break;
        released += went;
    }
    return released >= key;
}

/* Whether the region has been idle for at least `idle_ns`: each call of bfc_pool_trim_idle in that
 * time found it idle, and no allocation used it between the calls. The first call that finds the
 * region idle records the time; this function then returns true only if `idle_ns` is 0. */
static bool is_overdue(struct region *region, uint64_t now, uint64_t idle_ns) {
    if (region->seen_ns && region->seen_idle == region->idle_since)
        return now - region->seen_ns >= idle_ns;
    region->seen_idle = region->idle_since;
    region->seen_ns = now;
    return idle_ns == 0;
}

uint64_t bfc_pool_trim_idle(struct bfc_pool *pool, uint64_t idle_ns) {
    uint64_t released = 0, now = wait_clock(pool);
    pool_enter(pool);
    settle_completed(pool, FENCES_ALL);
    if (pool->paging)
        released = pages_trim_idle(pool, idle_ns, now);
    for (region_index r = 1; r < pool->region_high; r++) {
        if (!is_idle(pool, r))
            pool->regions[r].seen_ns = 0;
        else if (is_overdue(&pool->regions[r], now, idle_ns))
            released += region_release(pool, r);
    }
    growth_trimmed(pool);
    pool_leave(pool);
    return released;
}
