/*
 * Waits for memory that other jobs use.
 *
 * A waiting thread's place in the queue is an entry (struct bfc_waiter) of its process's segment.
 * The first thread in the queue that can be served asks the other jobs for what they cache. It does
 * so whenever one of them has freed something, of which that job's helper thread informs it, and
 * every NEXT_LOOK_NS, since processes may also end, or free memory outside of pools. The other
 * waiting threads only check whether they are first. A thread that died or is stopped drops out of
 * the queue because it no longer updates its entry.
 */
#include "interpose/features/pressure/pressure.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/numbers.h"
#include "interpose/arena/upstream.h"
#include "interpose/config/log.h"
#include "interpose/config/process.h"
#include "interpose/host/background.h"
#include "interpose/host/scratch.h"
#include "interpose/reuse/give_back.h"
#include "segment/queue.h"

#define MS UINT64_C(1000000)
/* How long a waiting thread that gets no signal pauses before it examines the queue again:
 * NEXT_LOOK_NS if the thread is the first in the queue, else LATER_LOOK_NS. */
#define NEXT_LOOK_NS (50 * MS)
#define LATER_LOOK_NS (100 * MS)
/* A thread that has found a deadlock examines the queue again after this time before it gives up,
 * because other jobs may have changed the queue meanwhile. */
#define SECOND_LOOK_NS (2 * MS)

enum { MOST_WAITERS = 256, MOST_CLAIMANTS = 64 };

/* What a thread knows while it waits for memory; too large for a small stack. */
struct wait {
    struct bfc_call *call;
    struct bfc_segment_header *published;
    struct bfc_waiter *slot;
    uint64_t until_ns;
    /* when the driver was last asked what is free, its answer without BFC_RESERVE, and what all
     * pools had reserved then */
    uint64_t asked_ns, free_bytes, reserved;
    struct bfc_queue_place turn;
    uint64_t turn_ns; /* when the call became the first in the queue; 0: it never was */
    bool announced;
    bool settled;  /* whether the last two examinations of the queue found the same sum of
                      reserved bytes */
    bool aside;    /* whether BFC_LIMIT prevents the allocation at the moment */
    bool saw_jobs; /* whether other jobs were seen on the device during the wait */
    size_t jobs, waiters;
    struct bfc_other_job job[BFC_JOBS_MOST];
    struct bfc_waiting all[MOST_WAITERS];
    struct bfc_claimant claimants[MOST_CLAIMANTS];
};

static pid_t slot_owner[BFC_WAITERS]; /* atomic: for each entry of the segment's `waiters`, the
                                         id of the thread that waits there; 0: none */

static bool is_gone(pid_t thread) {
    return syscall(SYS_tgkill, getpid(), thread, 0) != 0 && errno == ESRCH;
}

/* Returns the entry of the segment's `waiters` that this thread owns (a signal handler may have
 * left an earlier wait by siglongjmp), else takes one whose owner is gone; NULL: there is none. */
static struct bfc_waiter *find_slot(struct bfc_segment_header *published) {
    pid_t own = (pid_t)syscall(SYS_gettid);
    for (unsigned i = 0; i < BFC_WAITERS; i++)
        if (bfc_load_relaxed(&slot_owner[i]) == own)
            return &published->waiters[i];
    for (unsigned i = 0; i < BFC_WAITERS; i++) {
        pid_t owner = bfc_load_relaxed(&slot_owner[i]);
        if ((!owner || is_gone(owner)) && bfc_compare_exchange_seq_cst(&slot_owner[i], &owner, own))
            return &published->waiters[i];
    }
    return NULL;
}

/* Fills in the thread's entry of the segment's `waiters`. To be called before each examination of
 * the queue: a signal handler that ran in this thread may have waited with the same entry, and has
 * then cleared it. */
static bool hold_slot(struct wait *wait) {
    struct bfc_waiter *slot = find_slot(wait->published);
    if (!slot)
        return false;
    wait->slot = slot;
    bfc_store_relaxed(&slot->since_ns, wait->call->since_ns);
    bfc_store_relaxed(&slot->pool, wait->call->arena->stats.section_index);
    bfc_store_release(&slot->bytes, wait->call->bytes);
    return true;
}

static void give_slot_back(const struct wait *wait) {
    pid_t *owner = &slot_owner[wait->slot - wait->published->waiters];
    if (bfc_load_relaxed(owner) != (pid_t)syscall(SYS_gettid))
        return;
    bfc_store_relaxed(&wait->slot->position, 0);
    bfc_store_release(&wait->slot->bytes, 0);
    bfc_store_release(owner, 0);
}

/* Describes this process as other jobs see it in the queue. */
static struct bfc_other_job describe_ourselves(const struct wait *wait) {
    const struct bfc_arena *arena = wait->call->arena;
    struct bfc_other_job job = {.pid = wait->published->pid};
    struct bfc_arena *one = NULL;
    while ((one = bfc_arena_next_on(arena->device, one)))
        job.in_use += bfc_subtract_saturating(bfc_load_relaxed(&one->stats.section->stats.in_use),
                                              bfc_load_relaxed(&one->stats.section->pages.asleep));
    job.cached = bfc_subtract_saturating(bfc_load_relaxed(&arena->on->reserved), job.in_use);
    return job;
}

static void publish_look(const struct wait *wait, uint64_t now) {
    uint64_t rounded = bfc_rounded_up_on(wait->call->arena->device) / 4096;
    bfc_store_relaxed(&wait->slot->rounded_4k, (uint32_t)bfc_min(rounded, UINT32_MAX));
    bfc_store_relaxed(&wait->slot->seen_ns, now);
}

static void add_waiter(struct wait *wait, const struct bfc_waiter *waiter,
                       const struct bfc_other_job *job, uint32_t slot) {
    uint64_t in_use = job->in_use + UINT64_C(4096) * waiter->rounded_4k;
    if (wait->waiters < MOST_WAITERS)
        wait->all[wait->waiters++] =
            (struct bfc_waiting){job->pid,         slot,
                                 waiter->since_ns, bfc_in_driver_pages(waiter->bytes),
                                 in_use,           in_use + job->cached};
}

static bool is_on_our_device(const struct wait *wait, const struct bfc_waiter *waiter) {
    const struct bfc_segment_pool *sections = bfc_segment_sections_of(wait->published);
    return memcmp(sections[waiter->pool].device_uuid, wait->call->arena->stats.section->device_uuid,
                  16) == 0;
}

/* Adds the waiting threads of this process to the queue; returns the index of the calling
 * thread. */
static size_t add_own_waiters(struct wait *wait, uint64_t now) {
    size_t own = 0;
    const struct bfc_other_job job = describe_ourselves(wait);
    for (uint32_t i = 0; i < BFC_WAITERS; i++) {
        const struct bfc_waiter *waiter = &wait->published->waiters[i];
        if (waiter == wait->slot)
            own = wait->waiters;
        if (bfc_waiter_is_there(waiter, now) && is_on_our_device(wait, waiter))
            add_waiter(wait, waiter, &job, i);
    }
    return own;
}

/* Returns how many bytes are free on the device, without those that BFC_RESERVE leaves to other
 * programs; 0: not known. */
static uint64_t free_on_device(const struct bfc_call *call) {
    size_t free_bytes, total;
    if (!call->driver->cuMemGetInfo_v2 ||
        call->driver->cuMemGetInfo_v2(&free_bytes, &total) != CUDA_SUCCESS)
        return 0;
    return bfc_subtract_saturating(free_bytes, call->arena->left_to_others);
}

/* Whether BFC_LIMIT prevents the allocation even if this process gave back all that it caches. */
static bool limit_is_in_the_way(const struct wait *wait) {
    uint64_t over = bfc_call_limit_lacks(wait->call);
    return over && over > describe_ourselves(wait).cached;
}

/* Whether BFC_LIMIT prevents the allocation at present, because other threads of this process use
 * it up. If so, the call stops counting as waiting, so that other allocations are served, but keeps
 * its place in the queue. */
static bool steps_aside(struct wait *wait) {
    bool aside = limit_is_in_the_way(wait), was = wait->aside;
    wait->aside = aside;
    if (!aside)
        return false;
    wait->turn = (struct bfc_queue_place){0};
    bfc_store_relaxed(&wait->slot->seen_ns, 0);
    if (!was) {
        bfc_waiters_wake(wait->published);
        bfc_other_jobs_wake();
    }
    return true;
}

/* Whether jobs wait for each other's memory in a circle across devices, in which this process is
 * the one to give up. */
static bool is_stuck_across_devices(struct wait *wait) {
    bool some = false;
    for (size_t i = 0; i < wait->jobs; i++)
        some |= wait->job[i].waits_elsewhere;
    size_t own = 0, count = some ? bfc_claimants_find(wait->claimants, MOST_CLAIMANTS) : 0;
    while (own < count && wait->claimants[own].pid != wait->published->pid)
        own++;
    return own < count && bfc_deadlock_is_ours(wait->claimants, count, own);
}

/* Adds the waiting threads of other jobs to the queue; returns the bytes that jobs without a
 * waiting thread hold. */
static uint64_t add_others(struct wait *wait, uint64_t now) {
    uint64_t reach = 0;
    for (size_t i = 0; i < wait->jobs; i++) {
        const struct bfc_other_job *job = &wait->job[i];
        size_t before = wait->waiters;
        for (uint32_t k = 0; k < BFC_WAITERS; k++)
            if (bfc_waiter_is_there(&job->waiters[k], now))
                add_waiter(wait, &job->waiters[k], job, k);
        if (wait->waiters == before)
            reach = bfc_add_saturating(reach, bfc_rounded_at_most(job->in_use + job->cached, job));
    }
    return reach;
}

static uint64_t reserved_by_pools(const struct wait *wait) {
    uint64_t reserved = bfc_load_relaxed(&wait->call->arena->on->reserved);
    for (size_t i = 0; i < wait->jobs; i++)
        reserved = bfc_add_saturating(reserved, wait->job[i].in_use + wait->job[i].cached);
    return reserved;
}

/* Asks the driver how much is free, but only where that may have changed, since most wakes come
 * from frees that give nothing back to the driver. Asks every NEXT_LOOK_NS, since memory outside of
 * pools may have been freed; before a deadlock is believed; and when the reserved bytes of the
 * pools have changed, and once more after that, since a pool changes its count before it calls the
 * driver. */
static void ask_driver(struct wait *wait, uint64_t now) {
    uint64_t reserved = reserved_by_pools(wait);
    bool same = reserved == wait->reserved;
    if (!same || !wait->settled || wait->turn.is_stuck || now - wait->asked_ns >= NEXT_LOOK_NS) {
        wait->free_bytes = free_on_device(wait->call);
        wait->asked_ns = now;
    }
    wait->settled = same;
    wait->reserved = reserved;
}

static void note_turn(struct wait *wait, uint64_t now) {
    if (wait->turn.is_next && !wait->turn_ns)
        wait->turn_ns = now;
    bfc_store_relaxed(&wait->slot->position, wait->turn.position);
}

static void look_at_queue(struct wait *wait) {
    const struct bfc_arena *arena = wait->call->arena;
    uint64_t now = bfc_kernel_now_ns();
    publish_look(wait, now);
    wait->waiters = 0;
    size_t own = add_own_waiters(wait, now);
    wait->jobs = bfc_other_jobs_on(arena->stats.section->device_uuid, wait->job, BFC_JOBS_MOST);
    wait->saw_jobs |= wait->jobs > 0;
    ask_driver(wait, now);
    uint64_t reach = bfc_add_saturating(wait->free_bytes, add_others(wait, now));
    wait->turn = bfc_queue_find_place(wait->all, wait->waiters, own, reach);
    wait->turn.is_stuck = wait->turn.is_stuck || is_stuck_across_devices(wait);
    note_turn(wait, now);
}

/* Returns how many bytes the device lacks for the allocation. */
static uint64_t device_lacks(const struct wait *wait) {
    return bfc_subtract_saturating(bfc_in_driver_pages(bfc_call_lacks(wait->call)),
                                   wait->free_bytes);
}

/* Whether what all jobs and this process cache suffices without any further free of a program. */
static bool cached_suffices(const struct wait *wait) {
    uint64_t lacks = device_lacks(wait), cached = describe_ourselves(wait).cached;
    for (size_t i = 0; i < wait->jobs; i++)
        cached =
            bfc_add_saturating(cached, bfc_rounded_at_most(wait->job[i].cached, &wait->job[i]));
    return lacks <= cached;
}

/* Returns how many bytes to ask for: what the allocation lacks, or, if it lacks nothing, all of it,
 * since the pool's free pages may have enough bytes and yet not fit. */
static uint64_t wanted_bytes(const struct bfc_call *call) {
    uint64_t lacks = bfc_call_lacks(call);
    return lacks ? lacks : call->bytes;
}

static bool siblings_gave(const struct wait *wait) {
    return bfc_give_back_for_sibling(wait->call->arena, wanted_bytes(wait->call));
}

static bool jobs_gave(const struct wait *wait) {
    const struct bfc_process *process = bfc_process_if_made();
    bool asks =
        process && process->options.yield && (process->options.last_resort >> BFC_RUNG_JOBS & 1);
    return asks && cached_suffices(wait) &&
           bfc_yield_ask(wait->call->arena, wanted_bytes(wait->call));
}

/* Whether other threads of this process have freed enough in one piece: then the call is served
 * whatever its place in the queue. */
static bool own_pool_has_it(const struct bfc_call *call) {
    struct bfc_pool_stats stats;
    bfc_pool_read_stats(call->arena->pool, &stats);
    return stats.largest_free >= call->bytes && stats.ready >= call->bytes;
}

/* Whether what this process's pools cache would suffice once it is back with the driver. The call's
 * pool gives back its idle regions when it tries again, the process's other pools do so in
 * siblings_gave. */
static bool own_cache_suffices(const struct wait *wait) {
    return device_lacks(wait) <= describe_ourselves(wait).cached;
}

static bool try_again(const struct wait *wait) {
    struct bfc_call *call = wait->call;
    bool may_help = own_pool_has_it(call);
    if (wait->turn.is_next && !limit_is_in_the_way(wait))
        may_help = may_help || siblings_gave(wait) || own_cache_suffices(wait) || jobs_gave(wait);
    if (!may_help)
        return false;
    call->is_first = true;
    bool served = bfc_call_try_again(call);
    call->is_first = false;
    return served;
}

static void announce_demand(struct wait *wait) {
    struct bfc_demand demand = {wait->call->bytes, wait->turn_ns, wait->free_bytes};
    wait->announced = true;
    bfc_announce(wait->call->arena, wait->job, wait->jobs, demand);
}

/* Returns how many bytes the longest waiting allocation of another process needs; 0: none waits. */
static uint64_t bytes_of_next(const struct wait *wait) {
    const struct bfc_waiting *next = NULL;
    for (size_t i = 0; i < wait->waiters; i++)
        if (wait->all[i].pid != wait->published->pid &&
            (!next || wait->all[i].since_ns < next->since_ns))
            next = &wait->all[i];
    return next ? next->bytes : 0;
}

/* Announces to other jobs what the longest waiting allocation of another process needs, so that
 * memory that is freed before that process examines the queue is kept for it. */
static void announce_next(const struct wait *wait) {
    const struct bfc_arena *arena = wait->call->arena;
    struct bfc_demand demand = {bytes_of_next(wait), bfc_kernel_now_ns(),
                                free_on_device(wait->call)};
    bfc_announce(arena, wait->job, wait->jobs, demand);
    if (demand.bytes)
        bfc_announce_here(arena, demand.bytes);
}

/* Leaves the queue, and wakes all waiters, so that the next one examines the queue at once. */
static void leave_queue(const struct wait *wait) {
    if (wait->announced)
        announce_next(wait);
    give_slot_back(wait);
    bfc_waiters_wake(wait->published);
    bfc_other_jobs_wake();
}

static void log_begun(const struct bfc_call *call, double seconds) {
    static bool said;
    bool first = !bfc_exchange_relaxed(&said, true);
    bfc_log(first ? BFC_LOG_ERROR : BFC_LOG_INFO,
            "device %d: waits up to %g s for %s that other jobs use (BFC_WAIT)",
            (int)call->arena->device, seconds, BFC_BYTES(call->bytes));
}

/* Returns the bytes that other processes hold by the driver's count, which includes what this
 * process allocated outside its pools. */
static uint64_t held_by_others(const struct bfc_call *call) {
    size_t free_bytes, total;
    if (!call->driver->cuMemGetInfo_v2 ||
        call->driver->cuMemGetInfo_v2(&free_bytes, &total) != CUDA_SUCCESS)
        return 0;
    uint64_t own =
        bfc_load_relaxed(&call->arena->on->reserved) + bfc_rounded_up_on(call->arena->device);
    return bfc_subtract_saturating(total, free_bytes + own);
}

enum { MOST_DEVICES = 64 };
/* atomic: for each device, what held_by_others returned when the last wait ended that got no memory
 * and saw no other job; 0: there was no such wait. The bytes may be this process's own, outside its
 * pools. So no call waits again until the figure changes or another job appears. */
static uint64_t in_vain[MOST_DEVICES];

static uint64_t *vain_on(const struct bfc_call *call) {
    return &in_vain[(unsigned)call->arena->device % MOST_DEVICES];
}

static bool was_in_vain(const struct bfc_call *call, uint64_t held) {
    struct bfc_other_job job;
    return held && bfc_load_relaxed(vain_on(call)) == held &&
           bfc_other_jobs_on(call->arena->stats.section->device_uuid, &job, 1) == 0;
}

static void note_in_vain(const struct wait *wait) {
    if (wait->call->waited == BFC_WAIT_TIME && !wait->saw_jobs)
        bfc_store_relaxed(vain_on(wait->call), held_by_others(wait->call));
}

/* Whether a wait can help. It cannot if other processes hold less than the allocation lacks. Nor
 * can it if they hold as much as after the last wait that was in vain (`in_vain`), and no other job
 * with this library is on the device. */
static bool others_hold_enough(const struct bfc_call *call) {
    uint64_t lacks = bfc_call_device_lacks(call), held = held_by_others(call);
    return lacks == 0 || (lacks <= held && !was_in_vain(call, held));
}

static bool must_end(const struct bfc_call *call) {
    return bfc_background_is_over() || bfc_load_seq_cst(&call->arena->closers) ||
           bfc_load_acquire(&call->arena->ended) || !bfc_process_if_made();
}

/* The kernel's own struct, for the system call itself, since a program may replace sigaction. */
struct kernel_action {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

static bool signal_interrupts(int number, const sigset_t *blocked) {
    struct kernel_action action;
    return sigismember(blocked, number) == 0 &&
           syscall(SYS_rt_sigaction, number, NULL, &action, sizeof action.mask) == 0 &&
           action.handler != SIG_DFL && action.handler != SIG_IGN && !(action.flags & SA_RESTART);
}

/* Whether a signal handler may have run that does not restart system calls. A futex call with a
 * timeout returns EINTR after any handler and does not tell which. So all signals are searched for
 * such a handler. */
static bool signals_may_interrupt(void) {
    sigset_t blocked;
    if (sigprocmask(SIG_SETMASK, NULL, &blocked) != 0) /* on Linux this is the thread's mask */
        return true;
    for (int number = 1; number <= SIGRTMAX; number++)
        if (signal_interrupts(number, &blocked))
            return true;
    return false;
}

/* Sleeps until another thread or process wakes this waiter, or the queue must be examined again.
 * False: a signal handler of the program has run that does not restart system calls. */
static bool sleep_a_while(const struct wait *wait, uint32_t seen, uint64_t now) {
    uint64_t look = wait->turn.is_stuck  ? SECOND_LOOK_NS
                    : wait->turn.is_next ? NEXT_LOOK_NS
                                         : LATER_LOOK_NS;
    struct timespec time = bfc_timespec(bfc_min(look, wait->until_ns - now));
    return syscall(SYS_futex, &wait->slot->wake, FUTEX_WAIT, seen, &time, NULL, 0) == 0 ||
           errno != EINTR || !signals_may_interrupt();
}

static bool wait_in_queue(struct wait *wait) {
    struct bfc_call *call = wait->call;
    for (;;) {
        uint32_t seen = bfc_load_acquire(&wait->slot->wake);
        bool was_stuck = wait->turn.is_stuck;
        call->waited = BFC_WAIT_ENDED;
        if (must_end(call))
            return false;
        if (!steps_aside(wait))
            look_at_queue(wait);
        if (wait->turn.is_next)
            announce_demand(wait);
        if (try_again(wait))
            return true;
        uint64_t now = bfc_kernel_now_ns();
        if (call->status != BFC_OUT_OF_MEMORY)
            return false;
        bool stuck = was_stuck && wait->turn.is_stuck && !siblings_gave(wait) && !jobs_gave(wait);
        call->waited = stuck ? BFC_WAIT_STUCK : BFC_WAIT_TIME;
        if (stuck || now >= wait->until_ns)
            return false;
        call->waited = BFC_WAIT_SIGNAL;
        if (!sleep_a_while(wait, seen, now) || !hold_slot(wait))
            return false;
    }
}

static bool wait_with(struct wait *wait, double seconds) {
    uint64_t began = bfc_kernel_now_ns();
    if (!hold_slot(wait))
        return false;
    wait->until_ns = began + (uint64_t)(seconds * (double)BFC_NS_PER_SECOND);
    log_begun(wait->call, seconds);
    bool served = wait_in_queue(wait);
    leave_queue(wait);
    if (!served)
        note_in_vain(wait);
    wait->call->waited_ns = bfc_kernel_now_ns() - began;
    return served;
}

bool bfc_wait_for_others(struct bfc_call *call) {
    const struct bfc_process *process = bfc_process_if_made();
    struct bfc_segment_header *published = call->arena->stats.segment;
    if (!process || process->options.wait <= 0 || !published || bfc_call_limit_lacks(call) ||
        !others_hold_enough(call))
        return false;
    struct wait *wait = bfc_scratch_begin(sizeof *wait);
    if (!wait)
        return false;
    int cancel = bfc_cancel_disable();
    wait->call = call;
    wait->published = published;
    bool served = wait_with(wait, process->options.wait);
    bfc_cancel_restore(cancel);
    bfc_scratch_end(wait, sizeof *wait);
    return served;
}
