/*
 * What an allocation does when nothing that fits lies there.
 *
 * 1 poll: what the device has meanwhile finished is clean;
 * 2 ordered: neighbouring clean and dirty blocks are joined;
 * 3 dirty bytes above the budget: wait, for a bounded time, for the oldest marks that suffice;
 * 4 above the threshold: give back idle regions that nobody has wanted for long;
 * 5 grow;
 * and, the device having refused, the policy's last resorts (policy.c), with another look after
 * each. For `bfc`:
 * 6 wait, without bound, for the marks that suffice;
 * 7 give back wholly free regions, one by one, and grow;
 * 8 wait for all marks, since what they free may make regions wholly free, and again 7;
 * 9 ask the neighbours, and grow.
 *
 * The lock is dropped around every call of the source.
 */
#include "pool/internal.h"

/* How long step 3 waits at most, in all. */
#define BOUNDED_WAIT_NS ((uint64_t)10 * 1000 * 1000)

static bool took_hit(struct bfc_pool *pool, const struct request *request) {
    if (!pool_take(pool, request))
        return false;
    pool->stats->hits++;
    return true;
}

static void poll(struct bfc_pool *pool) {
    if (!pool->oldest && !pool->limbo) /* the source may mark what is in limbo now */
        return;
    pool_leave(pool);
    bfc_mark mark = pool->source.poll ? pool->source.poll(pool->source.context) : UINT64_MAX;
    pool_enter(pool);
    marks_complete(pool, mark);
}

static uint64_t now(const struct bfc_pool *pool) {
    return pool->source.now ? pool->source.now(pool->source.context) : 0;
}

/* Waits for one mark; returns how long, or UINT64_MAX when the mark was not complete after all. */
static uint64_t wait_for(struct bfc_pool *pool, bfc_mark mark, uint64_t timeout_ns) {
    pool_leave(pool);
    uint64_t began = now(pool);
    bfc_mark complete = pool->source.wait(pool->source.context, mark, timeout_ns);
    uint64_t spent = now(pool) - began;
    pool_enter(pool);
    pool->stats->waits++;
    pool->stats->wait_ns += spent;
    marks_complete(pool, complete);
    return complete >= mark ? spent : UINT64_MAX;
}

/* Waits for the oldest marks that suffice. Another thread may get there first: then again. */
static bool wait_and_take(struct bfc_pool *pool, const struct request *request,
                          uint64_t timeout_ns) {
    bfc_mark mark;
    uint64_t spent = 0;
    while (pool->source.wait && spent < timeout_ns &&
           marks_find_run(pool, request->granules, false, &mark)) {
        uint64_t rest = timeout_ns == UINT64_MAX ? timeout_ns : timeout_ns - spent;
        uint64_t took = wait_for(pool, mark, rest);
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
    if (!releasing_can_help(pool, request_size(pool, request)))
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
    return releasing_can_help(pool, request_size(pool, request)) &&
           regions_release(pool, UINT64_MAX) && regions_grow(pool, request, status);
}

static bool release_all(struct bfc_pool *pool, const struct request *request,
                        enum bfc_status *status) {
    regions_release(pool, UINT64_MAX);
    return regions_grow(pool, request, status);
}

static bool release_large(struct bfc_pool *pool, const struct request *request,
                          enum bfc_status *status) {
    return idle_release_large(pool, request_size(pool, request)) &&
           regions_grow(pool, request, status);
}

static bool wait_for_all(struct bfc_pool *pool, const struct request *request) {
    if (!pool->oldest || !pool->source.wait)
        return false;
    wait_for(pool, pool->details[pool->newest].mark, UINT64_MAX);
    return pool_take(pool, request);
}

static bool ask_neighbours(struct bfc_pool *pool, const struct request *request,
                           enum bfc_status *status) {
    uint64_t size = request_size(pool, request), limit = pool->config.limit;
    if (!pool->source.ask_neighbours || size > limit || pool->stats->reserved > limit - size)
        return false;
    pool_leave(pool);
    uint64_t came = pool->source.ask_neighbours(pool->source.context, size);
    pool_enter(pool);
    return pool_take(pool, request) || (came && regions_grow(pool, request, status));
}

static bool try_rung(struct bfc_pool *pool, enum rung rung, const struct request *request,
                     enum bfc_status *status) {
    switch (rung) {
    case RUNG_WAIT_ENOUGH:
        return wait_and_take(pool, request, UINT64_MAX);
    case RUNG_RELEASE_EACH:
        return release_each(pool, request, status);
    case RUNG_RELEASE_LARGE:
        return release_large(pool, request, status);
    case RUNG_WAIT_ALL:
        return wait_for_all(pool, request);
    case RUNG_RELEASE_IDLE:
        return release_idle(pool, request, status);
    case RUNG_RELEASE_ALL:
        return release_all(pool, request, status);
    case RUNG_ASK:
        return ask_neighbours(pool, request, status);
    case RUNG_END:
        break;
    }
    return false;
}

static bool last_resorts(struct bfc_pool *pool, const struct request *request,
                         enum bfc_status *status) {
    for (const enum rung *rung = pool->rules.rungs;
         *rung != RUNG_END && *status == BFC_OUT_OF_MEMORY; rung++)
        if (try_rung(pool, *rung, request, status))
            return true;
    return false;
}

enum bfc_status serve_miss(struct bfc_pool *pool, const struct request *request) {
    poll(pool);
    if (took_hit(pool, request))
        return BFC_OK;
    if ((request->flags & BFC_ALLOCATE_DIRTY) && pool_take_run(pool, request)) {
        pool->stats->hits++;
        return BFC_OK;
    }
    struct bfc_pool_stats *stats = pool->stats;
    if (stats->dirty > pool->config.dirty_budget && wait_and_take(pool, request, BOUNDED_WAIT_NS)) {
        stats->hits++;
        return BFC_OK;
    }
    if (stats->reserved > pool->config.gc_threshold)
        idle_collect(pool);
    enum bfc_status status;
    bool taken = regions_grow(pool, request, &status);
    if (!taken && status == BFC_OUT_OF_MEMORY) {
        taken = last_resorts(pool, request, &status);
        stats->retries += taken;
    }
    stats->misses += taken;
    stats->out_of_memory += !taken;
    return taken ? BFC_OK : status;
}
