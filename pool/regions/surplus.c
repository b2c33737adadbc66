/*
 * Gives idle regions back where the program has outgrown them.
 *
 * A program whose sizes vary, such as training on texts of varying length, leaves regions behind
 * that are wholly free but too small for what comes next, and the pool grows beside them: without
 * this, training of GPT-2's size on an H100 reserved 1.93 times as much as was ever in use.
 *
 * So while more is reserved than the most that was in use and a tenth, an idle region goes back at
 * a free that has waited for the device: the driver's free of the region waits as well. An
 * allocation would be the wrong moment, since natively it waits for nothing.
 */
#include "base/atomic.h"
#include "pool/policy/policy.h"
#include "pool/regions/regions.h"

/* The pool is looked at once in so many frees. So that a program which needs the regions again
 * soon hardly pays for it, only a few go back at first, and later one in so many frees. */
enum { FREES_A_LOOK = 4, FIRST_RELEASES = 16, FREES_A_RELEASE = 512 };

static bool may_release(const struct bfc_pool *pool) {
    return pool->has_surplus &&
           pool->surplus_releases < FIRST_RELEASES + pool->stats->frees / FREES_A_RELEASE;
}

uint64_t bfc_pool_release_surplus(struct bfc_pool *pool) {
    uint64_t released = 0;
    if (bfc_load_relaxed(&pool->stats->frees) % FREES_A_LOOK)
        return 0;
    pool_enter(pool);
    policy_note_surplus(pool);
    /* It is counted before the lock is dropped, so that several threads keep to the bound together,
     * and releases that the driver refuses count as well. */
    if (may_release(pool) && regions_releasable(pool)) {
        pool->surplus_releases++;
        released = regions_release(pool, 1);
        policy_note_surplus(pool);
    }
    pool_leave(pool);
    return released;
}
