/* What both of bfcstat's ways of showing need: names of kinds, sums over pools. */
#include "tools/bfcstat.h"

const char *forward_reason_name(enum bfc_forward_reason reason) {
    switch (reason) {
    case BFC_FORWARD_DISABLED:
        return "disabled";
    case BFC_FORWARD_NO_CONTEXT:
        return "no_context";
    case BFC_FORWARD_OLD_DRIVER:
        return "old_driver";
    case BFC_FORWARD_FOREIGN:
        return "foreign";
    case BFC_FORWARD_BAD_CALL:
        return "bad_call";
    case BFC_FORWARD_NO_HOST_MEMORY:
        return "no_host_memory";
    case BFC_FORWARD_TOO_LARGE:
        return "too_large";
    case BFC_FORWARD_CAPTURE:
        return "capture";
    case BFC_FORWARD_EXPORTS:
        return "exports";
    case BFC_FORWARD_BYPASSED:
        return "bypassed";
    case BFC_FORWARD_REASONS:
        break;
    }
    return NULL;
}

const char *bypass_kind_name(enum bfc_bypass_kind kind) {
    switch (kind) {
    case BFC_BYPASS_ASYNC:
        return "async";
    case BFC_BYPASS_MANAGED:
        return "managed";
    case BFC_BYPASS_VMM:
        return "vmm";
    case BFC_BYPASS_ARRAY:
        return "array";
    case BFC_BYPASS_PITCH:
        return "pitch";
    case BFC_BYPASS_V1:
        return "v1";
    case BFC_BYPASS_HOST:
        return "host";
    case BFC_BYPASS_UNKNOWN_ENTRY:
        return "unknown_entry";
    case BFC_BYPASS_KINDS:
        break;
    }
    return NULL;
}

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
