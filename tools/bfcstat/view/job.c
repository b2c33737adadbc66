/* What all outputs of bfcstat need: names of states, threads that wait for memory, sums over the
 * pools of a job. */
#include "tools/bfcstat/view/view.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "segment/queue.h"
#include "tools/text/print_text.h"

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

/* Whether this entry of a job's table of waiting threads is of a thread that still waits for
 * memory. `seen_ns` is when the thread last looked at the queue of waiting threads. A thread that
 * has not looked for long is stopped, or has left the wait by longjmp. While the job's own limit
 * prevents the allocation, `seen_ns` is 0, so that other jobs go first, but the thread still waits.
 */
static bool is_waiting(const struct bfc_waiter *waiter) {
    return waiter->bytes && (!waiter->seen_ns || bfc_waiter_is_there(waiter, bfc_kernel_now_ns()));
}

const struct bfc_waiter *job_waiter(const struct bfc_job *job, unsigned pool) {
    const struct bfc_waiter *first = NULL;
    for (unsigned i = 0; i < BFC_WAITERS && job->state != BFC_JOB_ENDED; i++) {
        const struct bfc_waiter *waiter = &job->header.waiters[i];
        if (waiter->pool == pool && is_waiting(waiter) &&
            (!first || waiter->since_ns < first->since_ns))
            first = waiter;
    }
    return first;
}

uint64_t waited_ns(const struct bfc_waiter *waiter) {
    uint64_t now = bfc_kernel_now_ns();
    return now > waiter->since_ns ? now - waiter->since_ns : 0;
}

char *waiter_text(const struct bfc_waiter *waiter, char *text, size_t size) {
    char bytes[TEXT_FIGURE], time[TEXT_FIGURE];
    text[0] = '\0';
    if (!waiter)
        return text;
    int used = snprintf(text, size, "waits for %s for %s",
                        bfc_bytes_text(waiter->bytes, bytes, sizeof bytes),
                        text_duration(waited_ns(waiter), time, sizeof time));
    if (waiter->position && used > 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used, ", position %u", (unsigned)waiter->position);
    return text;
}

const char *job_command(const struct bfc_job *job, char *text, size_t size) {
    text_printable(job->header.command, text, size);
    const char *end = strchrnul(text, ' ');
    const char *slash = memrchr(text, '/', (size_t)(end - text));
    return slash ? slash + 1 : text;
}

const char *other_user(const struct findings *findings, const struct bfc_job *job) {
    return job->name.uid == geteuid() ? NULL : findings->identities[job - findings->jobs].user;
}

struct job_totals job_totals(const struct bfc_job *job) {
    struct job_totals totals = {0};
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++) {
        const struct bfc_segment_pool *pool = &job->pools[i];
        if (pool->state != BFC_POOL_ACTIVE)
            continue;
        if (bfc_pool_is_host(pool)) {
            totals.spilled += pool->stats.in_use;
            totals.spilled_blocks += pool->stats.blocks;
        } else {
            totals.in_use += pool->stats.in_use;
            totals.requested += pool->stats.requested;
            totals.cached += bfc_pool_cached(&pool->stats);
            totals.reserved += pool->stats.reserved;
            totals.asleep += pool->pages.asleep;
        }
        totals.host_waits += pool->host_waits;
        totals.waits += pool->stats.waits;
        totals.out_of_memory += pool->stats.out_of_memory;
        totals.hits += pool->stats.hits;
        totals.misses += pool->stats.misses;
    }
    return totals;
}

const char *job_sleep_name(uint64_t state) {
    static const char *const names[] = {
        [BFC_SLEEP_AWAKE] = "awake",
        [BFC_SLEEP_FALLING] = "falling asleep",
        [BFC_SLEEP_ASLEEP] = "asleep",
        [BFC_SLEEP_WAKING] = "waking",
    };
    return state <= BFC_SLEEP_WAKING ? names[state] : "other";
}

const char *job_sleep_text(const struct bfc_job *job, const struct bfc_segment_pool *pool,
                           char *text, size_t size) {
    const struct bfc_segment_sleep *sleep = &job->header.sleep;
    uint64_t bytes = pool ? pool->pages.asleep : job_totals(job).asleep;
    uint64_t ns = bfc_subtract_saturating(bfc_wall_clock_ns(), sleep->since_ns);
    char age[TEXT_FIGURE], figure[TEXT_FIGURE], where[96];
    text[0] = '\0';
    if (sleep->state == BFC_SLEEP_ASLEEP)
        snprintf(text, size, "asleep for %s, %s in %s", text_duration(ns, age, sizeof age),
                 bfc_bytes_text(bytes, figure, sizeof figure),
                 text_printable(sleep->where, where, sizeof where));
    return text;
}

uint64_t pool_held(const struct bfc_segment_pool *pool) {
    return bfc_subtract_saturating(pool->stats.reserved, pool->pages.asleep);
}
