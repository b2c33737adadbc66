/*
 * What an allocation tries when the device has refused a region, before it fails with
 * BFC_OUT_OF_MEMORY: the steps (rungs) that its policy lists in policy.c, in order, with a new
 * search for a free block before each. For policy `bfc`:
 *
 * 1 give deferred blocks a fence, and wait, without a bound on the time, for the fences that free
 *   enough memory;
 * 2 give wholly free regions back, one by one, and try to grow after each;
 * 3 wait for all fences, since more regions may then be wholly ready, and can go back; then wait
 *   for awaited blocks, one by one;
 * 4 do step 2 again;
 *
 * and last, with any policy, try to grow again if any thread has given a region back meanwhile.
 */

#include <time.h>

#include "pool/regions/regions.h"
#include "pool/search/take.h"

/* The longest wait for the next block that was freed in the order of a stream. It is bounded
 * because that stream may itself wait for something that the program does only after this
 * allocation. */
#define AWAITED_WAIT_NS ((uint64_t)1000 * 1000 * 1000)
/* An allocation waits for RELEASE_WAIT_NS at most until other threads have finished giving regions
 * back, and looks every NAP_NS whether they have. */
#define RELEASE_WAIT_NS ((uint64_t)1000 * 1000 * 1000)
#define NAP_NS 20000L
/* The most times that an allocation asks the device again because regions have gone back. */
enum { RELEASE_TRIES = 16 };

/* Whether the configured limit would have room for a further `size` bytes if all wholly free
 * regions went back. False also if there is no such region. */
static bool releasing_can_help(const struct bfc_pool *pool, uint64_t size) {
    uint64_t limit = pool->config.limit, idle = regions_releasable(pool);
    uint64_t rest = pool->stats->reserved - idle;
    return idle && rest <= limit && size <= limit - rest;
}

static bool release_all(struct bfc_pool *pool, const struct request *request,
                        enum bfc_status *status) {
    regions_release(pool, UINT64_MAX);
    return regions_grow(pool, request, status);
}

/* Gives idle regions back one by one, and tries to grow after each. Gives none back if the
 * configured limit would have no room for the request even without them. A pool with pages gives
 * all its regions back at once, because it has few, and then grows by moving ready pages. */
static bool release_each(struct bfc_pool *pool, const struct request *request,
                         enum bfc_status *status) {
    if (pool->paging)
        return release_all(pool, request, status);
    if (!releasing_can_help(pool, request_size(request)))
        return false;
    while (!take_any(pool, request)) {
        if (!regions_release(pool, 1))
            return false;
        if (regions_grow(pool, request, status))
            return true;
        if (*status != BFC_OUT_OF_MEMORY)
            return false;
    }
    return true;
}

/* A search that goes on as long as blocks become ready could last for ever, if other threads
 * allocate and free in the order of streams all the time. So it ends once the clock has reached
 * `until` and the pool's count of blocks that became ready has reached `readied`. By then as many
 * blocks have become ready as were awaited when the search began. */
struct search {
    uint64_t readied, until;
};

static struct search begin_search(const struct bfc_pool *pool) {
    return (struct search){pool->readied + pool->awaited, wait_clock(pool) + AWAITED_WAIT_NS};
}

static bool may_go_on(const struct bfc_pool *pool, const struct search *search) {
    return pool->readied < search->readied || wait_clock(pool) < search->until;
}

/* While this function makes a block ready, another thread may take that block, and free others,
 * which do not become ready at once. So the function goes on until no further block becomes ready.
 * If it stopped earlier, the allocation could fail although memory is free. */
bool take_settled(struct bfc_pool *pool, const struct request *request) {
    struct search search = begin_search(pool);
    uint64_t readied;
    do {
        readied = pool->readied;
        if (pool->awaited)
            wait_for_awaited_block(pool, 0);
        if (take_any(pool, request))
            return true;
    } while (pool->readied != readied && may_go_on(pool, &search));
    return false;
}

/* Waits for awaited blocks (freed in the order of a stream), one after another, until a wait makes
 * no block ready. Tries to serve the request after each wait, and even if no block is awaited,
 * since other threads may have made blocks ready after the last search. */
static bool wait_for_awaited(struct bfc_pool *pool, const struct request *request,
                             enum bfc_status *status) {
    struct search search = begin_search(pool);
    uint64_t readied;
    do {
        bool awaits = pool->awaited;
        readied = pool->readied;
        if (awaits)
            wait_for_awaited_block(pool, AWAITED_WAIT_NS);
        if (take_settled(pool, request) || (awaits && release_each(pool, request, status)))
            return true;
    } while (pool->readied != readied && *status == BFC_OUT_OF_MEMORY && may_go_on(pool, &search));
    return false;
}

static bool wait_for_all(struct bfc_pool *pool, const struct request *request,
                         enum bfc_status *status) {
    if (!pool->upstream.wait)
        return false;
    if (pool->pending_list.oldest) {
        wait_until_complete(pool, pool->details[pool->pending_list.newest].fence, UINT64_MAX);
        if (take_any(pool, request))
            return true;
    }
    return wait_for_awaited(pool, request, status);
}

static bool wait_for_enough(struct bfc_pool *pool, const struct request *request) {
    if (pool->deferred_list.oldest && pool->upstream.wait) {
        wait_until_complete(pool, BFC_DEFERRED_FENCE, UINT64_MAX);
        if (take_any(pool, request))
            return true;
    }
    return wait_and_take(pool, request, UINT64_MAX);
}

static bool is_release(enum rung rung) {
    return rung == RUNG_RELEASE_LARGE || rung == RUNG_RELEASE_IDLE || rung == RUNG_RELEASE_ALL;
}

static bool try_rung(struct bfc_pool *pool, enum rung rung, const struct request *request,
                     enum bfc_status *status) {
    if (pool->paging && is_release(rung))
        return release_all(pool, request, status);
    switch (rung) {
    case RUNG_WAIT_ENOUGH:
        return wait_for_enough(pool, request);
    case RUNG_RELEASE_EACH:
        return release_each(pool, request, status);
    case RUNG_RELEASE_LARGE:
        return idle_release_large(pool, request_size(request)) &&
               regions_grow(pool, request, status);
    case RUNG_WAIT_ALL:
        return wait_for_all(pool, request, status);
    case RUNG_RELEASE_IDLE:
        return releasing_can_help(pool, request_size(request)) &&
               regions_release(pool, UINT64_MAX) && regions_grow(pool, request, status);
    case RUNG_RELEASE_ALL:
        return release_all(pool, request, status);
    case RUNG_END:
        break;
    }
    return false;
}

static void await_releases(struct bfc_pool *pool) {
    for (uint64_t began = wait_clock(pool);
         pool->releasing && wait_clock(pool) - began < RELEASE_WAIT_NS;) {
        pool_leave(pool);
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        pool_enter(pool);
    }
}

uint64_t bfc_pool_await_releases(struct bfc_pool *pool) {
    pool_enter(pool);
    uint64_t releasing = pool->releasing;
    await_releases(pool);
    bool went = !pool->releasing;
    pool_leave(pool);
    return went ? releasing : 0;
}

/*
 * Asks the device again whenever this allocation or another thread has given a region back since
 * the device was last asked, even if that was while the device answered. First waits for releases
 * that other threads have begun, so that the allocation does not fail only because their memory has
 * left the pool but has not reached the device. The wait is bounded, because such a release may
 * itself wait for something that the program does only after this allocation.
 */
static bool grow_after_releases(struct bfc_pool *pool, const struct request *request,
                                uint64_t released, enum bfc_status *status) {
    for (int tries = 0; tries < RELEASE_TRIES && *status == BFC_OUT_OF_MEMORY; tries++) {
        await_releases(pool);
        if (pool->stats->release_calls == released)
            return take_any(pool, request);
        released = pool->stats->release_calls;
        if (regions_grow(pool, request, status))
            return true;
    }
    return false;
}

bool last_resorts(struct bfc_pool *pool, const struct request *request, uint64_t released,
                  enum bfc_status *status) {
    for (const enum rung *rung = pool->rules.rungs;
         *rung != RUNG_END && *status == BFC_OUT_OF_MEMORY; rung++)
        if (take_any(pool, request) || try_rung(pool, *rung, request, status))
            return true;
    return grow_after_releases(pool, request, released, status);
}
