/*
 * Gives idle regions back if the program no longer has a use for them, or if one larger region
 * would serve it better.
 *
 * A program whose sizes vary, such as training on texts of varying length, leaves regions behind
 * that are wholly free but too small for its next requests, and the pool takes further regions.
 * Without the function of this file, training of GPT-2's size on an H100 reserved 1.93 times as
 * much as was ever in use.
 *
 * So regions that are idle at the same time, as after a training step, are merged: all go back, and
 * the next region is as large as they were together, or smaller, if the pool would otherwise
 * reserve more than 1.1 times the most that was ever in use. Idle regions are merged when much less
 * is in use than the most that ever was, and when a good part of the memory is idle (MOST_USED,
 * IDLE_PART). They are merged only if the pool has taken new regions since the last merge; so
 * merging soon ends in a program that repeats its allocations. If none are merged, and more is
 * reserved than 1.1 times the most that was ever in use, idle regions go back one by one, except
 * those that are set apart, since a plan is about to use them.
 *
 * Regions go back only during a free, after a wait for the device, since the driver's own free of a
 * region waits as well, and so does cudaFree without the pool. They do not go back during an
 * allocation, since cudaMalloc without the pool waits for nothing. No new region is taken during a
 * free, since a program does not expect a free to allocate.
 */
#include "base/atomic.h"
#include "base/numbers.h"
#include "pool/policy/growth.h"
#include "pool/policy/policy.h"
#include "pool/regions/regions.h"

/* Only one in FREES_A_LOOK frees looks for idle regions. The first FIRST_RELEASES idle regions go
 * back at once, later ones at most one in FREES_A_RELEASE frees. A program may soon need such
 * regions again, and taking them from the device costs time; at this rate it costs hardly any. */
enum { FREES_A_LOOK = 4, FIRST_RELEASES = 16, FREES_A_RELEASE = 512 };

/* It was in vain that regions went back if the pool later reserves as much as before, as in a loop
 * whose blocks leave gaps between them; or if none went back after the wait. After FREELY_IN_VAIN
 * such times, FREES_A_RELEASE frees must lie between one time and the next, and twice as many after
 * each VAIN_A_DOUBLING further ones, up to MOST_DOUBLINGS times. So a program that repeats its
 * allocations soon waits no more. If the pool stays smaller for FREES_STANDING frees, or for four
 * times as many as must lie between, the counting begins anew. */
enum { FREELY_IN_VAIN = 32, VAIN_A_DOUBLING = 2, MOST_DOUBLINGS = 11, FREES_STANDING = 8192 };

static bool may_release(const struct bfc_pool *pool) {
    return policy_has_surplus(pool) &&
           pool->surplus_releases < FIRST_RELEASES + pool->stats->frees / FREES_A_RELEASE;
}

/* Idle regions are merged only if at most MOST_USED tenths of the most bytes that were ever in use
 * are in use now, and if the idle regions have at least 1 / IDLE_PART of the reserved bytes. */
enum { MOST_USED = 6, IDLE_PART = 4 };

static bool should_merge(const struct bfc_pool *pool) {
    const struct bfc_pool_stats *stats = pool->stats;
    unsigned count = 0;
    if (!policy_may_merge(pool) || stats->in_use / MOST_USED > stats->peak_in_use / 10)
        return false;
    for (region_index r = 1; r < pool->region_high; r++)
        count += region_idle_block(pool, &pool->regions[r]) != 0;
    return count > 1 && regions_releasable(pool) >= stats->reserved / IDLE_PART;
}

static uint64_t merge_regions(struct bfc_pool *pool) {
    pool->merge_calls = pool->stats->reserve_calls;
    uint64_t released = regions_release(pool, UINT64_MAX);
    uint64_t room = bfc_subtract_saturating(policy_allowed(pool), pool->stats->reserved);
    pool->merge_bytes = growth_on_device(bfc_min(released, room));
    return released;
}

/* To be called at each look. Notes whether it was in vain that regions went back last, and returns
 * whether regions may go back again so soon. */
static bool has_rested(struct bfc_pool *pool) {
    const struct bfc_pool_stats *stats = pool->stats;
    uint64_t since = stats->frees - pool->frees_given;
    uint64_t doublings = bfc_subtract_saturating(pool->in_vain, FREELY_IN_VAIN) / VAIN_A_DOUBLING;
    uint64_t rest = pool->in_vain < FREELY_IN_VAIN ? 0 : (uint64_t)FREES_A_RELEASE << doublings;
    if (pool->given_from && since > FREES_STANDING + 4 * rest) {
        pool->in_vain = 0;
        pool->given_from = 0;
    } else if (pool->given_from && stats->reserved >= pool->given_from) {
        pool->in_vain += doublings < MOST_DOUBLINGS;
        pool->given_from = 0;
    }
    return since >= rest;
}

bool bfc_pool_begin_surplus(struct bfc_pool *pool) {
    if (bfc_load_relaxed(&pool->stats->frees) % FREES_A_LOOK)
        return false;
    pool_enter(pool);
    policy_note_surplus(pool);
    bool begins = has_rested(pool) && !pool->gives_surplus &&
                  (should_merge(pool) || (may_release(pool) && regions_largest_idle(pool, false)));
    pool->gives_surplus = pool->gives_surplus || begins;
    pool_leave(pool);
    return begins;
}

uint64_t bfc_pool_release_surplus(struct bfc_pool *pool, bool may_go) {
    uint64_t released = 0;
    region_index r;
    pool_enter(pool);
    pool->given_from = pool->stats->reserved;
    pool->frees_given = pool->stats->frees;
    if (may_go && should_merge(pool)) {
        released = merge_regions(pool);
    } else if (may_go && may_release(pool) && (r = regions_largest_idle(pool, false))) {
        pool->surplus_releases++; /* counts as well if the driver refuses */
        released = region_release(pool, r);
    }
    pool->gives_surplus = false;
    policy_note_surplus(pool);
    pool_leave(pool);
    return released;
}
