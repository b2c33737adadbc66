/* What all of bfcstat's views need: names of kinds, sums over pools. */
#include "tools/bfcstat/view/view.h"

const char *job_state_name(enum bfc_job_state state) {
    switch (state) {
    case BFC_JOB_RUNNING:
        return "running";
    case BFC_JOB_ENDED:
        return "ended";
    case BFC_JOB_UNKNOWN:
        break;
    }
    return "unknown";
}

struct job_totals job_totals(const struct bfc_job *job) {
    struct job_totals totals = {0};
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++) {
        const struct bfc_segment_pool *pool = &job->pools[i];
        if (pool->state != BFC_POOL_ACTIVE)
            continue;
        totals.in_use += pool->stats.in_use;
        totals.requested += pool->stats.requested;
        totals.cached += bfc_pool_cached(&pool->stats);
        totals.reserved += pool->stats.reserved;
        totals.host_waits += pool->host_waits;
        totals.waits += pool->stats.waits;
        totals.out_of_memory += pool->stats.out_of_memory;
        totals.hits += pool->stats.hits;
        totals.misses += pool->stats.misses;
    }
    return totals;
}
