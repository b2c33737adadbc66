/*
 * What an allocation does when nothing that fits lies there.
 *
 * 1 poll: what the device has meanwhile finished is ready;
 * 2 ordered: neighbouring ready and pending blocks are joined;
 * 3 pending bytes above the budget: wait, for a bounded time, for the oldest fences that suffice;
 * 4 above the threshold: give back idle regions that nobody has wanted for long;
 * 5 grow;
 * and, the device having refused, the policy's last resorts (policy.c), with another look after
 * each. For `bfc`:
 * 6 give what is deferred a fence, and wait, without bound, for the fences that suffice;
 * 7 give back wholly free regions, one by one, and grow;
 * 8 wait for all fences, since what they free may make regions wholly free, then for awaited
 *   blocks, one by one, and again 7;
 * 9 ask others on the device, and grow;
 * and last, for any policy, grow if a region went meanwhile, and the same size without its
 * rounding.
 *
 * The lock is dropped around every call of the upstream.
 */
#include "pool/serve.h"

#include <time.h>

#include "pool/idle.h"
#include "pool/regions.h"
#include "pool/settle.h"
#include "pool/take.h"

/* How long step 3 waits at most, in all. */
#define BOUNDED_WAIT_NS ((uint64_t)10 * 1000 * 1000)
/*
 * And how long step 8 waits for an awaited block to become ready: not for ever, since its stream
 * may need what this thread does next.
 */
#define AWAITED_WAIT_NS ((uint64_t)1000 * 1000 * 1000)
/* And for regions that other threads are giving back; and between two looks. */
#define RELEASE_WAIT_NS ((uint64_t)1000 * 1000 * 1000)
#define NAP_NS 20000L

static bool took_hit(struct bfc_pool *pool, const struct request *request) {
    if (!pool_take(pool, request))
        return false;
    pool->stats->hits++;
    return true;
}

static void poll(struct bfc_pool *pool) {
    /* The upstream may give what is deferred a fence now, and say that what was awaited is ready.
     */
    if (!pool->oldest && !pool->deferred && !pool->awaited)
        return;
    pool_leave(pool);
    bfc_fence fence =
        pool->upstream.poll ? pool->upstream.poll(pool->upstream.context) : UINT64_MAX;
    pool_enter(pool);
    fences_complete(pool, fence);
}

static uint64_t now(const struct bfc_pool *pool) {
    return pool->upstream.now ? pool->upstream.now(pool->upstream.context) : 0;
}

/* Waits for one fence; returns how long, or UINT64_MAX when the fence was not complete after all.
 */
static uint64_t wait_for(struct bfc_pool *pool, bfc_fence fence, uint64_t timeout_ns) {
    pool_leave(pool);
    uint64_t began = now(pool);
    bfc_fence complete = pool->upstream.wait(pool->upstream.context, fence, timeout_ns);
    uint64_t spent = now(pool) - began;
    pool_enter(pool);
    pool->stats->waits++;
    pool->stats->wait_ns += spent;
    fences_complete(pool, complete);
    return complete >= fence ? spent : UINT64_MAX;
}

/* Waits for the oldest fences that suffice. Another thread may get there first: then again. */
static bool wait_and_take(struct bfc_pool *pool, const struct request *request,
                          uint64_t timeout_ns) {
    bfc_fence fence;
    uint64_t spent = 0;
    while (pool->upstream.wait && spent < timeout_ns &&
           fences_find_run(pool, request->granules, false, &fence)) {
        uint64_t rest = timeout_ns == UINT64_MAX ? timeout_ns : timeout_ns - spent;
        uint64_t took = wait_for(pool, fence, rest);
        if (pool_take(pool, request))
            return true;
        if (took == UINT64_MAX)
            return false;
        spent += took;
    }
    return false;
}

/* Could the limit be kept with this block, if all idle regions went? */
static bool releasing_can_help(const struct bfc_pool *pool, uint64_t size) {
    uint64_t limit = pool->config.limit, idle = regions_releasable(pool);
    uint64_t rest = pool->stats->reserved - idle;
    return idle && rest <= limit && size <= limit - rest;
}

/* Gives regions back as long as that can help, and grows. */
static bool release_each(struct bfc_pool *pool, const struct request *request,
                         enum bfc_status *status) {
    if (!releasing_can_help(pool, request_size(request)))
        return false;
    while (regions_release(pool, 1)) {
        if (regions_grow(pool, request, status))
            return true;
        if (*status != BFC_OUT_OF_MEMORY)
            return false;
    }
    return false;
}

static bool release_idle(struct bfc_pool *pool, const struct request *request,
                         enum bfc_status *status) {
    return releasing_can_help(pool, request_size(request)) && regions_release(pool, UINT64_MAX) &&
           regions_grow(pool, request, status);
}

static bool release_all(struct bfc_pool *pool, const struct request *request,
                        enum bfc_status *status) {
    regions_release(pool, UINT64_MAX);
    return regions_grow(pool, request, status);
}

static bool release_large(struct bfc_pool *pool, const struct request *request,
                          enum bfc_status *status) {
    return idle_release_large(pool, request_size(request)) && regions_grow(pool, request, status);
}

/* Waits for one awaited block after another, as long as they become ready. */
static bool wait_for_awaited(struct bfc_pool *pool, const struct request *request,
                             enum bfc_status *status) {
    uint64_t readied;
    do {
        if (!pool->awaited)
            return false;
        readied = pool->readied;
        wait_for(pool, BFC_NO_FENCE, AWAITED_WAIT_NS);
        if (pool_take(pool, request) || release_each(pool, request, status))
            return true;
    } while (pool->readied != readied && *status == BFC_OUT_OF_MEMORY);
    return false;
}

static bool wait_for_all(struct bfc_pool *pool, const struct request *request,
                         enum bfc_status *status) {
    if (!pool->upstream.wait)
        return false;
    if (pool->oldest) {
        wait_for(pool, pool->details[pool->newest].fence, UINT64_MAX);
        if (pool_take(pool, request))
            return true;
    }
    return wait_for_awaited(pool, request, status);
}

/* Gives what is deferred its fences first. */
static bool wait_for_enough(struct bfc_pool *pool, const struct request *request) {
    if (pool->deferred && pool->upstream.wait) {
        wait_for(pool, BFC_DEFERRED_FENCE, UINT64_MAX);
        if (pool_take(pool, request))
            return true;
    }
    return wait_and_take(pool, request, UINT64_MAX);
}

static bool ask_other_jobs(struct bfc_pool *pool, const struct request *request,
                           enum bfc_status *status) {
    uint64_t size = request_size(request), limit = pool->config.limit;
    if (!pool->upstream.ask_other_jobs || size > limit || pool->stats->reserved > limit - size)
        return false;
    pool_leave(pool);
    uint64_t came = pool->upstream.ask_other_jobs(pool->upstream.context, size);
    pool_enter(pool);
    return pool_take(pool, request) || (came && regions_grow(pool, request, status));
}

static bool try_rung(struct bfc_pool *pool, enum rung rung, const struct request *request,
                     enum bfc_status *status) {
    switch (rung) {
    case RUNG_WAIT_ENOUGH:
        return wait_for_enough(pool, request);
    case RUNG_RELEASE_EACH:
        return release_each(pool, request, status);
    case RUNG_RELEASE_LARGE:
        return release_large(pool, request, status);
    case RUNG_WAIT_ALL:
        return wait_for_all(pool, request, status);
    case RUNG_RELEASE_IDLE:
        return release_idle(pool, request, status);
    case RUNG_RELEASE_ALL:
        return release_all(pool, request, status);
    case RUNG_ASK:
        return ask_other_jobs(pool, request, status);
    case RUNG_END:
        break;
    }
    return false;
}

/*
 * A wait may have given regions back, and other threads do: what went meanwhile may be enough. What
 * they are giving back is natively free already; but no longer than for a while, since the call may
 * wait for work that needs what this thread does next.
 */
static bool grow_after_releases(struct bfc_pool *pool, const struct request *request,
                                uint64_t released, enum bfc_status *status) {
    for (uint64_t began = now(pool); pool->releasing && now(pool) - began < RELEASE_WAIT_NS;) {
        pool_leave(pool);
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        pool_enter(pool);
    }
    return *status == BFC_OUT_OF_MEMORY && pool->stats->release_calls != released &&
           regions_grow(pool, request, status);
}

static bool last_resorts(struct bfc_pool *pool, const struct request *request, uint64_t released,
                         enum bfc_status *status) {
    for (const enum rung *rung = pool->rules.rungs;
         *rung != RUNG_END && *status == BFC_OUT_OF_MEMORY; rung++)
        if (try_rung(pool, *rung, request, status))
            return true;
    return grow_after_releases(pool, request, released, status);
}

/* What lacks less than was added by rounding is not refused. */
static bool take_unrounded(struct bfc_pool *pool, const struct request *request,
                           enum bfc_status *status) {
    struct request least = *request;
    least.granules = granules_to_hold(request->bytes);
    return *status == BFC_OUT_OF_MEMORY && least.granules < request->granules &&
           (pool_take(pool, &least) || regions_grow(pool, &least, status));
}

enum bfc_status serve_miss(struct bfc_pool *pool, const struct request *request) {
    poll(pool);
    if (took_hit(pool, request))
        return BFC_OK;
    if ((request->flags & BFC_ALLOCATE_PENDING) && pool_take_run(pool, request)) {
        pool->stats->hits++;
        return BFC_OK;
    }
    struct bfc_pool_stats *stats = pool->stats;
    if (stats->pending > pool->config.pending_budget &&
        wait_and_take(pool, request, BOUNDED_WAIT_NS)) {
        stats->hits++;
        return BFC_OK;
    }
    if (stats->reserved > pool->config.gc_threshold)
        idle_collect(pool);
    enum bfc_status status;
    uint64_t released = stats->release_calls;
    bool taken = regions_grow(pool, request, &status);
    if (!taken && status == BFC_OUT_OF_MEMORY) {
        taken = last_resorts(pool, request, released, &status) ||
                take_unrounded(pool, request, &status);
        stats->retries += taken;
    }
    stats->misses += taken;
    stats->out_of_memory += !taken;
    return taken ? BFC_OK : status;
}
