/*
 * Asks other jobs whose helper threads are alive to give memory back: first those that cache most
 * on the device, as many at once as cache enough together, and further ones if enough has not come
 * after EACH_NS.
 *
 * A segment is written by another process, so nothing in it is trusted: the sizes of its parts are
 * compared with our own constants, and its figures decide only how much to ask for.
 */
#include "interpose/features/pressure/pressure.h"

#include <string.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/numbers.h"
#include "interpose/config/log.h"
#include "interpose/config/process.h"
#include "interpose/host/scratch.h"
#include "segment/figures.h"
#include "segment/name.h"
#include "segment/queue.h"
#include "segment/request.h"

#define ALL_NS ((uint64_t)90 * 1000 * 1000)
#define EACH_NS ((uint64_t)25 * 1000 * 1000)
#define LOOK_NS 200000
/* How long to wait for jobs that run but have not answered within ALL_NS, because the machine is
 * busy. After a job has not answered within BUSY_NS either, calls wait for it only ALL_NS each,
 * until SLOW_FOR_NS have passed. */
#define BUSY_NS ((uint64_t)1000 * 1000 * 1000)
#define SLOW_FOR_NS ((uint64_t)60 * 1000 * 1000 * 1000)

/* Whether the job's published settings allow requests (BFC_YIELD). */
static bool job_yields(const struct bfc_segment_header *header) {
    size_t length;
    const char *value = bfc_configuration_find(header->configuration, sizeof header->configuration,
                                               "BFC_YIELD", &length);
    return !value || length != 1 || *value != '0';
}

static struct bfc_segment_header *open_job(int pid) {
    struct bfc_segment_header *header = bfc_other_job_map(pid);
    if (header && bfc_segment_may_answer(header) && job_yields(header))
        return header;
    if (header)
        munmap(header, BFC_SEGMENT_SIZE);
    return NULL;
}

/* Bytes that the job caches on other devices than the arena's. */
static uint64_t cached_elsewhere(const struct bfc_segment_header *header,
                                 const struct bfc_arena *arena) {
    const struct bfc_segment_pool *pools = bfc_segment_sections_of(header);
    uint64_t bytes = 0;
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++)
        if (bfc_load_acquire(&pools[i].state) == BFC_POOL_ACTIVE &&
            pools[i].memory == BFC_MEMORY_DEVICE &&
            memcmp(pools[i].device_uuid, arena->stats.section->device_uuid,
                   sizeof pools[i].device_uuid) != 0)
            bytes +=
                bfc_load_relaxed(&pools[i].stats.ready) + bfc_load_relaxed(&pools[i].stats.pending);
    return bytes;
}

/* A job that was asked. A job gives back memory of any of its devices, so the bytes that it caches
 * on other devices (`elsewhere`) are added to the request. */
struct asked {
    struct bfc_request request;
    int pid;
    uint64_t elsewhere;
    bool given_up; /* whether the job's answer is not waited for any longer */
};

static bool ask_job(struct asked *asked, const struct bfc_arena *arena, int pid, uint64_t bytes) {
    struct bfc_segment_header *header = open_job(pid);
    if (!header)
        return false;
    asked->pid = pid;
    asked->given_up = false;
    asked->elsewhere = cached_elsewhere(header, arena);
    asked->request = bfc_request_trim(header, bytes + asked->elsewhere);
    return true;
}

/* Whether a request to a job is over: the job has answered it, or can no longer do so. */
static bool is_over(const struct asked *asked) {
    return bfc_request_is_served(&asked->request) || !bfc_segment_may_answer(asked->request.header);
}

static uint64_t came_from(const struct asked *asked) {
    return bfc_subtract_saturating(bfc_request_released(&asked->request), asked->elsewhere);
}

static uint64_t came_from_all(const struct asked *asked, size_t count) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += came_from(&asked[i]);
    return bytes;
}

static bool have_answered(const struct asked *asked, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!asked[i].given_up && !is_over(&asked[i]))
            return false;
    return true;
}

/* Waits until all asked jobs have answered, enough memory was given back, or `until` has passed. */
static void wait_for_answers(const struct asked *asked, size_t count, uint64_t wanted,
                             uint64_t until) {
    struct bfc_bounded_wait patience = bfc_bounded_wait_until(until, bfc_now_ns(), LOOK_NS);
    while (!have_answered(asked, count) && came_from_all(asked, count) < wanted &&
           bfc_bounded_wait_nap(&patience))
        ;
}

/* A ring of jobs that did not answer within BUSY_NS. Until `until_ns`, calls do not wait that long
 * for these jobs' answers. */
static struct {
    int pid;           /* atomic */
    uint64_t until_ns; /* atomic */
} slow[16];

static bool is_known_to_be_slow(int pid, uint64_t now) {
    for (size_t i = 0; i < sizeof slow / sizeof slow[0]; i++)
        if (bfc_load_relaxed(&slow[i].pid) == pid && now < bfc_load_relaxed(&slow[i].until_ns))
            return true;
    return false;
}

static void remember_slow(int pid, uint64_t now) {
    static unsigned next;
    unsigned i = bfc_fetch_add_relaxed(&next, 1) % (sizeof slow / sizeof slow[0]);
    bfc_store_relaxed(&slow[i].pid, pid);
    bfc_store_relaxed(&slow[i].until_ns, now + SLOW_FOR_NS);
}

/* Waits until `deadline` for jobs that run but have not answered yet: the machine may be busy. */
static void wait_for_busy(struct asked *asked, size_t count, uint64_t wanted, uint64_t deadline) {
    for (size_t i = 0; i < count; i++)
        asked[i].given_up =
            is_known_to_be_slow(asked[i].pid, bfc_now_ns()) || bfc_pid_is_stopped(asked[i].pid);
    wait_for_answers(asked, count, wanted, deadline);
    for (size_t i = 0; i < count && came_from_all(asked, count) < wanted; i++)
        if (!asked[i].given_up && !is_over(&asked[i]))
            remember_slow(asked[i].pid, bfc_now_ns());
}

static void let_go(struct asked *asked, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!is_over(&asked[i]))
            bfc_request_withdraw(&asked[i].request);
        munmap(asked[i].request.header, BFC_SEGMENT_SIZE);
    }
}

/* Returns the job that caches most, of those not asked yet, so that few are asked; NULL: none. */
static struct bfc_other_job *take_richest(struct bfc_other_job *all, size_t count) {
    struct bfc_other_job *richest = NULL;
    for (size_t i = 0; i < count; i++)
        if (all[i].cached && (!richest || all[i].cached > richest->cached))
            richest = &all[i];
    return richest;
}

struct conversation {
    struct bfc_other_job all[BFC_JOBS_MOST];
    struct asked asked[BFC_JOBS_MOST];
    size_t jobs, count; /* how many jobs were found; how many of them were asked */
};

/* Asks further jobs until those asked by this call cache `bytes` together. False: no further job
 * could be asked. */
static bool ask_enough(struct conversation *here, const struct bfc_arena *arena, uint64_t bytes) {
    size_t before = here->count;
    struct bfc_other_job *next;
    while (bytes && (next = take_richest(here->all, here->jobs))) {
        uint64_t cached = next->cached;
        next->cached = 0;
        if (!ask_job(&here->asked[here->count], arena, next->pid, bytes))
            continue;
        here->count++;
        bytes = bfc_subtract_saturating(bytes, cached);
    }
    return here->count > before;
}

static uint64_t ask_all(struct conversation *here, const struct bfc_arena *arena, uint64_t wanted) {
    struct asked *asked = here->asked;
    uint64_t came = 0, began = bfc_now_ns(), deadline = began + ALL_NS;
    here->count = 0;
    here->jobs = bfc_other_jobs_on(arena->stats.section->device_uuid, here->all, BFC_JOBS_MOST);
    while (came < wanted && bfc_now_ns() < deadline && ask_enough(here, arena, wanted - came)) {
        uint64_t until = bfc_now_ns() + EACH_NS;
        wait_for_answers(asked, here->count, wanted, bfc_min(until, deadline));
        came = came_from_all(asked, here->count);
    }
    wait_for_answers(asked, here->count, wanted, deadline);
    wait_for_busy(asked, here->count, wanted, began + BUSY_NS);
    came = came_from_all(asked, here->count);
    let_go(asked, here->count);
    return came;
}

uint64_t bfc_yield_ask(const struct bfc_arena *arena, uint64_t wanted) {
    struct conversation *here = bfc_scratch_begin(sizeof *here);
    int cancel = bfc_cancel_disable();
    uint64_t came = here ? ask_all(here, arena, wanted) : 0;
    bfc_cancel_restore(cancel);
    bfc_scratch_end(here, sizeof *here);
    return came;
}

/* Asks for what the device lacks now, since other contexts of this process may have given something
 * back after the allocation failed. Returns how many bytes came. */
static uint64_t ask_other_jobs(const struct bfc_call *call) {
    static unsigned seen;
    uint64_t lacking = bfc_call_device_lacks(call);
    uint64_t came = bfc_yield_ask(call->arena, lacking ? lacking : call->bytes);
    bfc_log_repeated(BFC_LOG_INFO, &seen,
                     "device %d: other jobs were asked for %s and gave back %s",
                     (int)call->arena->device, BFC_BYTES(call->bytes), BFC_BYTES(came));
    return came;
}

/* Other jobs are asked again, for at most this time, as long as they give memory back: another
 * job's allocation may have taken what they gave. */
#define LONGEST_NS BFC_NS_PER_SECOND

/* Whether the call will wait (BFC_WAIT) behind allocations of other jobs. If so, what jobs give
 * back now belongs to those allocations. */
static bool waits_behind_others(const struct bfc_process *process, const struct bfc_call *call) {
    return process->options.wait > 0 && (process->options.last_resort >> BFC_RUNG_WAIT & 1) &&
           bfc_waiters_want(call->arena->stats.section).bytes;
}

bool bfc_ask_jobs(struct bfc_call *call) {
    const struct bfc_process *process = bfc_process_if_made();
    if (!process || !process->options.yield || waits_behind_others(process, call) ||
        bfc_call_limit_lacks(call)) /* memory of other jobs does not help against BFC_LIMIT */
        return false;
    uint64_t until = bfc_now_ns() + LONGEST_NS;
    while (ask_other_jobs(call)) {
        if (bfc_call_try_again(call))
            return true;
        if (call->status != BFC_OUT_OF_MEMORY || bfc_now_ns() >= until)
            return false;
    }
    return false;
}
