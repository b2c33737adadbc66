/* Announces to other jobs the memory that an allocation waits for. */
#include "interpose/features/pressure/pressure.h"

#include <string.h>
#include <sys/mman.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/numbers.h"
#include "interpose/config/process.h"
#include "interpose/host/scratch.h"
#include "segment/queue.h"
#include "segment/request.h"

#define MS UINT64_C(1000000)
/* For ANNOUNCED_NS, other jobs leave announced memory to the allocation that waits for it. If it
 * still waits ANNOUNCE_AFTER_NS after the announcement, they are told again. */
#define ANNOUNCED_NS (1000 * MS)
#define ANNOUNCE_AFTER_NS (250 * MS)

/* Returns how many bytes are free on the device or cached by these jobs. */
static uint64_t in_reach(const struct bfc_other_job *jobs, size_t count, uint64_t free_bytes) {
    for (size_t i = 0; i < count; i++)
        free_bytes = bfc_add_saturating(free_bytes, jobs[i].cached);
    return free_bytes;
}

static struct bfc_awaited make_announcement(uint64_t bytes, uint64_t turn_ns, uint64_t now) {
    return (struct bfc_awaited){.until_ns = bytes ? now + ANNOUNCED_NS : 0,
                                .turn_ns = turn_ns,
                                .bytes = bytes,
                                .from_here = UINT64_MAX};
}

static bool is_known(const struct bfc_other_job *job, const struct bfc_awaited *awaited,
                     uint64_t now) {
    return job->awaited.turn_ns == awaited->turn_ns && job->awaited.bytes == awaited->bytes &&
           job->awaited.from_here == awaited->from_here &&
           job->awaited.until_ns > now + ANNOUNCED_NS - ANNOUNCE_AFTER_NS &&
           job->awaited.until_ns <= now + ANNOUNCED_NS;
}

static void tell_job(const struct bfc_arena *arena, const struct bfc_other_job *job,
                     const struct bfc_awaited *awaited, uint64_t now) {
    struct bfc_segment_header *header = bfc_other_job_map(job->pid);
    if (!header)
        return;
    if (bfc_segment_has_helper(header))
        bfc_waiters_announce(header, arena->stats.section->device_uuid, awaited, now);
    munmap(header, BFC_SEGMENT_SIZE);
}

void bfc_announce(const struct bfc_arena *arena, const struct bfc_other_job *jobs, size_t count,
                  struct bfc_demand demand) {
    uint64_t now = bfc_kernel_now_ns(), all = in_reach(jobs, count, demand.free_bytes);
    struct bfc_awaited awaited = make_announcement(demand.bytes, demand.turn_ns, now);
    for (size_t i = 0; i < count; i++) {
        awaited.from_here = bfc_subtract_saturating(demand.bytes, all - jobs[i].cached);
        if (!is_known(&jobs[i], &awaited, now))
            tell_job(arena, &jobs[i], &awaited, now);
    }
}

void bfc_announce_here(const struct bfc_arena *arena, uint64_t bytes) {
    uint64_t now = bfc_kernel_now_ns();
    struct bfc_awaited awaited = make_announcement(bytes, now, now);
    bfc_waiters_announce(arena->stats.segment, arena->stats.section->device_uuid, &awaited, now);
}

/* Returns the entry of the allocation that has waited longest in any of these jobs; NULL: none
 * waits. */
static const struct bfc_waiter *oldest_of(const struct bfc_other_job *jobs, size_t count,
                                          uint64_t now) {
    const struct bfc_waiter *oldest = NULL;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < BFC_WAITERS; k++) {
            const struct bfc_waiter *waiter = &jobs[i].waiters[k];
            if (bfc_waiter_is_there(waiter, now) &&
                (!oldest || waiter->since_ns < oldest->since_ns))
                oldest = waiter;
        }
    return oldest;
}

static void look_for_waiters(const struct bfc_arena *arena, struct bfc_other_job *jobs) {
    uint64_t now = bfc_kernel_now_ns();
    size_t count = bfc_other_jobs_on(arena->stats.section->device_uuid, jobs, BFC_JOBS_MOST);
    const struct bfc_waiter *oldest = oldest_of(jobs, count, now);
    if (oldest)
        bfc_announce_here(arena, oldest->bytes);
}

void bfc_announce_to_new(struct bfc_arena *arena, bool is_ours) {
    (void)is_ours;
    const struct bfc_process *process = bfc_process_if_made();
    const size_t size = BFC_JOBS_MOST * sizeof(struct bfc_other_job);
    if (!process || process->options.wait <= 0 || !arena->stats.segment)
        return;
    struct bfc_other_job *jobs = bfc_scratch_begin(size);
    int cancel = bfc_cancel_disable();
    if (jobs)
        look_for_waiters(arena, jobs);
    bfc_cancel_restore(cancel);
    bfc_scratch_end(jobs, size);
}
