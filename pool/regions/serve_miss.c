/*
 * Serves an allocation for which no free block fits:
 *
 * 1 poll the upstream: blocks whose work the device has finished become ready;
 * 2 with BFC_ALLOCATE_PENDING, merge neighbouring ready and pending blocks;
 * 3 if the pending bytes exceed pending_budget, wait, for a bounded time, for the oldest fences
 *   that free enough memory;
 * 4 if the reserved bytes exceed gc_threshold, give back the regions that have been wholly free for
 *   long;
 * 5 with BFC_ALLOCATE_APART, take a ready block of a region that is set apart;
 * 6 take a new region or new pages from the device, or move pages;
 * 7 if the device refuses, split a large wholly free region, which the steps before avoid; then, if
 *   giving a region back could wait for the device, take any ready block with room, even one that
 *   the policy refuses;
 * 8 open the regions that are set apart to all allocations, and take from them, or move their ready
 *   pages; then take what other threads or streams have made ready meanwhile;
 * 9 try the policy's last resorts (last_resorts.c), then the same request without rounding;
 * 10 take from planned regions, even what the policy refuses.
 */

#include "pool/regions/regions.h"
#include "pool/search/place.h"
#include "pool/search/take.h"

/* The longest time in all that an allocation waits for pending blocks while the pool could still
 * grow. */
#define BOUNDED_WAIT_NS ((uint64_t)10 * 1000 * 1000)

/* Tries the request again without the policy's rounding, so that it does not fail for lack of bytes
 * that only rounding has added. */
static bool take_unrounded(struct bfc_pool *pool, const struct request *request,
                           enum bfc_status *status) {
    struct request least = *request;
    least.granules = granules_to_hold(request->bytes);
    return *status == BFC_OUT_OF_MEMORY && least.granules < request->granules &&
           (take_any(pool, &least) || regions_grow(pool, &least, status));
}

/* If giving a region back may wait for the device: serves the request from a block that the policy
 * refuses, before the last resorts give regions back. That could wait for ever, since the device
 * may be waiting for something that the program does only after this allocation. */
static bool take_unruled(struct bfc_pool *pool, const struct request *request) {
    return pool->config.release_waits && pool->rules.exact && place_take_smallest(pool, request);
}

static bool climb_all(struct bfc_pool *pool, const struct request *request, uint64_t released,
                      enum bfc_status *status) {
    struct bfc_pool_stats *stats = pool->stats;
    uint64_t began = wait_clock(pool);
    bool climbs = !pool->config.no_last_resorts;
    bool taken = (climbs && last_resorts(pool, request, released, status)) ||
                 take_unrounded(pool, request, status);
    if (climbs) {
        stats->last_resorts++;
        stats->last_resorts_saved += taken;
        stats->last_resort_ns += wait_clock(pool) - began;
    }
    stats->retries += taken && !(request->flags & BFC_ALLOCATE_AGAIN);
    return taken;
}

/* Tries to serve the request without taking memory from the device: by steps 1 to 5 of the list at
 * the top of this file. */
static bool take_without_growing(struct bfc_pool *pool, const struct request *request) {
    const struct bfc_pool_stats *stats = pool->stats;
    wait_poll(pool);
    if (take_any(pool, request))
        return true;
    if ((request->flags & BFC_ALLOCATE_PENDING) && take_run(pool, request))
        return true;
    if (stats->pending > pool->config.pending_budget && !take_is_kept(pool, request) &&
        wait_and_take(pool, request, BOUNDED_WAIT_NS))
        return true;
    if (stats->reserved > pool->config.gc_threshold)
        idle_collect(pool);
    return apart_spare(pool, request);
}

enum bfc_status serve_miss(struct bfc_pool *pool, const struct request *request) {
    struct bfc_pool_stats *stats = pool->stats;
    request->out->error = 0;
    if (take_without_growing(pool, request)) {
        stats->hits++;
        return BFC_OK;
    }
    enum bfc_status status;
    /* release_calls already counts a region that another thread is giving back right now, but the
     * device may not have it yet. Subtracting 1 makes `released` differ from release_calls, so that
     * last_resorts asks the device again after a refusal. */
    uint64_t released = stats->release_calls - (pool->releasing != 0);
    bool taken = regions_grow(pool, request, &status);
    taken = taken || take_kept(pool, request) || take_unruled(pool, request);
    if (!taken && status != BFC_ASLEEP && apart_end(pool))
        taken = take_any(pool, request) || (pool->paging && regions_grow(pool, request, &status));
    if (!taken && status == BFC_OUT_OF_MEMORY)
        taken = take_settled(pool, request) || climb_all(pool, request, released, &status) ||
                /* the last resorts may have waited, so there may now be ready blocks that the
                 * policy refuses, and that take_any therefore does not take */
                take_unruled(pool, request);
    taken = taken || apart_take(pool, request);
    stats->misses += taken;
    stats->out_of_memory += !taken && !(request->flags & BFC_ALLOCATE_UNCOUNTED);
    return taken ? BFC_OK : status;
}
