/*
 * Asks other jobs of the user to sleep, those first that have been idle longest.
 *
 * The other jobs' published segments only say whom to ask; each job decides by its own settings
 * whether it falls asleep.
 */
#include <sys/mman.h>

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "interpose/config/log.h"
#include "interpose/features/sleep/sleep.h"
#include "interpose/host/scratch.h"
#include "interpose/reuse/last_resort.h"
#include "segment/other_jobs.h"
#include "segment/request.h"

#define NAP_NS 1000000L
/* How long to wait for a job's answer to the request to sleep, and, once that job has begun to fall
 * asleep, until it is asleep. */
#define ANSWER_NS (2 * BFC_NS_PER_SECOND)
#define FALL_NS (60 * BFC_NS_PER_SECOND)

/* Another job of the user on the same device. */
struct neighbour {
    struct bfc_segment_header *header; /* the job's published segment, mapped; NULL: the job
                                        * was asked already, or must not be asked */
    uint64_t active_ns;
};

struct neighbours {
    struct bfc_other_job jobs[BFC_JOBS_MOST];
    struct neighbour all[BFC_JOBS_MOST];
    size_t count;
};

static bool may_be_asked(const struct bfc_segment_header *header) {
    return bfc_segment_may_answer(header) && bfc_load_relaxed(&header->sleep.active_ns) &&
           bfc_load_relaxed(&header->sleep.state) == BFC_SLEEP_AWAKE;
}

static void find_neighbours(struct neighbours *here, const struct bfc_call *call) {
    here->count =
        bfc_other_jobs_on(call->arena->stats.section->device_uuid, here->jobs, BFC_JOBS_MOST);
    for (size_t i = 0; i < here->count; i++) {
        struct bfc_segment_header *header = bfc_other_job_map(here->jobs[i].pid);
        if (header && !may_be_asked(header)) {
            munmap(header, BFC_SEGMENT_SIZE);
            header = NULL;
        }
        here->all[i].header = header;
        here->all[i].active_ns = header ? bfc_load_relaxed(&header->sleep.active_ns) : 0;
    }
}

static struct neighbour *take_longest_idle(struct neighbours *here) {
    struct neighbour *longest = NULL;
    for (size_t i = 0; i < here->count; i++)
        if (here->all[i].header && (!longest || here->all[i].active_ns < longest->active_ns))
            longest = &here->all[i];
    return longest;
}

static bool must_end(const struct bfc_call *call) {
    return bfc_load_seq_cst(&call->arena->closers) || bfc_load_acquire(&call->arena->ended);
}

static bool is_asleep(const struct bfc_segment_header *header) {
    return bfc_load_acquire(&header->sleep.state) == BFC_SLEEP_ASLEEP;
}

/* Asks a job to sleep and waits for its answer. Returns whether the job has fallen asleep or ended,
 * so that its memory is free. */
static bool ask_job(struct bfc_segment_header *header, const struct bfc_call *call) {
    uint64_t began = bfc_kernel_now_ns();
    bfc_request_sleep(header, &header->sleep.begged);
    while (!bfc_sleep_is_answered(&header->sleep) && bfc_segment_has_helper(header) &&
           !must_end(call)) {
        bool falls = bfc_load_acquire(&header->sleep.state) == BFC_SLEEP_FALLING;
        if (bfc_kernel_now_ns() - began > (falls ? FALL_NS : ANSWER_NS))
            break;
        bfc_nap(NAP_NS);
    }
    return is_asleep(header) || !bfc_segment_has_helper(header);
}

static bool ask_all(struct neighbours *here, struct bfc_call *call) {
    struct neighbour *next;
    bool served = false;
    find_neighbours(here, call);
    while ((next = take_longest_idle(here))) {
        static unsigned seen;
        bool asleep = !served && !must_end(call) && ask_job(next->header, call);
        if (asleep)
            bfc_log_repeated(BFC_LOG_INFO, &seen, "job %d was put to sleep for %s",
                             (int)next->header->pid, BFC_BYTES(call->bytes));
        munmap(next->header, BFC_SEGMENT_SIZE);
        next->header = NULL;
        served = served || (asleep && bfc_call_try_again(call));
    }
    return served;
}

bool bfc_beg_neighbours(struct bfc_call *call) {
    if (bfc_call_limit_lacks(call))
        return false;
    struct neighbours *here = bfc_scratch_begin(sizeof *here);
    int cancel = bfc_cancel_disable();
    bool served = here && ask_all(here, call);
    bfc_cancel_restore(cancel);
    bfc_scratch_end(here, sizeof *here);
    return served;
}
