/*
 * Waiting for memory that other jobs use.
 *
 * The place in the queue is a slot in our segment (struct bfc_waiter). The first in the queue that
 * can be served asks the other jobs for what they cache whenever one of them has freed something,
 * which their helper threads tell; and every now and then, since processes may also end, or free
 * memory that no pool has. The others only look whether it is their turn. Who dies or is stopped
 * leaves the queue by no longer looking.
 */
#include "interpose/features/pressure/wait_for_others.h"

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
#include "interpose/features/pressure/announce.h"
#include "interpose/features/pressure/rounding.h"
#include "interpose/features/pressure/yield.h"
#include "interpose/host/background.h"
#include "interpose/host/scratch.h"
#include "interpose/reuse/give_back.h"
#include "interpose/stats/published_segment.h"
#include "segment/other_jobs.h"
#include "segment/queue.h"

#define MS UINT64_C(1000000)
/* Between two looks that nobody asked for: of the one whose turn it is, and of the others. */
#define NEXT_LOOK_NS (50 * MS)
#define LATER_LOOK_NS (100 * MS)
/* Of one that seems to be stuck: others may have changed while it looked. */
#define SECOND_LOOK_NS (2 * MS)

enum { MOST_WAITERS = 256, MOST_CLAIMANTS = 64 };

/* A wait under way; too large for a small stack. */
struct wait {
    struct bfc_call *call;
    struct bfc_segment_header *published;
    struct bfc_waiter *slot;
    uint64_t until_ns;
    /* When the driver was last asked, what it had free, without what is left to others; and what
     * pools had reserved when it last looked. */
    uint64_t asked_ns, free_bytes, reserved;
    struct bfc_queue_place turn;
    uint64_t turn_ns; /* when its turn came first; 0: it has not */
    bool announced;
    bool settled;  /* what pools have reserved was the same in its last two looks */
    bool aside;    /* BFC_LIMIT is in its way */
    bool saw_jobs; /* others of the user were on the device meanwhile */
    size_t jobs, waiters;
    struct bfc_other_job job[BFC_JOBS_MOST];
    struct bfc_waiting all[MOST_WAITERS];
    struct bfc_claimant claimants[MOST_CLAIMANTS];
};

/* ---- the slot ---- */

static pid_t slot_owner[BFC_WAITERS]; /* atomic: the thread that waits in it; 0: none */

static bool is_gone(pid_t thread) {
    return syscall(SYS_tgkill, getpid(), thread, 0) != 0 && errno == ESRCH;
}

/* This thread's own, if a handler of the program's has left an earlier wait of it (siglongjmp);
 * else one that nobody waits in. NULL: there is none. */
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

/* At each look, since a wait within a handler of the program's uses this thread's slot too, and
 * gives it back. */
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

/* ---- looking at the queue ---- */

/* This process, as it appears to other jobs. */
static struct bfc_other_job describe_ourselves(const struct wait *wait) {
    const struct bfc_arena *arena = wait->call->arena;
    struct bfc_other_job job = {.pid = wait->published->pid};
    struct bfc_arena *one = NULL;
    while ((one = bfc_arena_next_on(arena->device, one)))
        job.in_use += bfc_load_relaxed(&one->stats.section->stats.in_use);
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

/* Our own first: the index of our entry is returned. */
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

/* Without what is left to others. */
static uint64_t free_on_device(const struct bfc_call *call) {
    size_t free_bytes, total;
    if (!call->driver->cuMemGetInfo_v2 ||
        call->driver->cuMemGetInfo_v2(&free_bytes, &total) != CUDA_SUCCESS)
        return 0;
    return bfc_subtract_saturating(free_bytes, call->arena->left_to_others);
}

/* Even without what this process only caches. */
static bool limit_is_in_the_way(const struct wait *wait) {
    uint64_t over = bfc_call_limit_lacks(wait->call);
    return over && over > describe_ourselves(wait).cached;
}

/* What stands in its way is BFC_LIMIT, which other threads of this process have come to: then it is
 * not there for others, which are served, but keeps its place. */
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

/* Some who hold memory of our device wait for that of another one, and they perhaps for us. */
static bool is_stuck_across_devices(struct wait *wait) {
    bool some = false;
    for (size_t i = 0; i < wait->jobs; i++)
        some |= wait->job[i].waits_elsewhere;
    size_t own = 0, count = some ? bfc_claimants_find(wait->claimants, MOST_CLAIMANTS) : 0;
    while (own < count && wait->claimants[own].pid != wait->published->pid)
        own++;
    return own < count && bfc_deadlock_is_ours(wait->claimants, count, own);
}

/* Returns what those have in which nobody waits. */
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

/*
 * The driver is asked when something else than a pool may have freed: every now and then, and
 * before a deadlock is believed; and when pools took or gave, and once more after that, since they
 * count before they call the driver. Most wakes come from frees that change nothing for it.
 */
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

/* ---- the one whose turn it is ---- */

/* By how much the device falls short. */
static uint64_t device_lacks(const struct wait *wait) {
    return bfc_subtract_saturating(bfc_in_driver_pages(wait->call->bytes), wait->free_bytes);
}

/* Also what waiting processes cache, and this one: all that can come without anything being freed.
 */
static bool cached_suffices(const struct wait *wait) {
    uint64_t lacks = device_lacks(wait), cached = describe_ourselves(wait).cached;
    for (size_t i = 0; i < wait->jobs; i++)
        cached =
            bfc_add_saturating(cached, bfc_rounded_at_most(wait->job[i].cached, &wait->job[i]));
    return lacks <= cached;
}

static bool others_gave(const struct wait *wait) {
    const struct bfc_process *process = bfc_process_if_made();
    struct bfc_call *call = wait->call;
    bool asks =
        process && process->options.yield && (process->options.last_resort >> BFC_RUNG_JOBS & 1);
    return bfc_give_back_for_sibling(call->arena, call->bytes) ||
           (asks && cached_suffices(wait) && bfc_yield_ask(call->arena, call->bytes));
}

/* Something that other threads of this process freed suffices, whosever turn it is. */
static bool own_pool_has_it(const struct bfc_call *call) {
    struct bfc_pool_stats stats;
    bfc_pool_read_stats(call->arena->pool, &stats);
    return stats.largest_free >= call->bytes && stats.ready >= call->bytes;
}

/* With what they freed in several regions, which go back to the driver first. */
static bool own_cache_suffices(const struct wait *wait) {
    return device_lacks(wait) <= describe_ourselves(wait).cached;
}

static bool try_again(const struct wait *wait) {
    struct bfc_call *call = wait->call;
    bool may_help = own_pool_has_it(call);
    if (wait->turn.is_next && !limit_is_in_the_way(wait))
        may_help = may_help || own_cache_suffices(wait) || others_gave(wait);
    if (!may_help)
        return false;
    call->is_first = true;
    bool served = bfc_call_try_again(call);
    call->is_first = false;
    return served;
}

/* ---- announcing, and leaving ---- */

static void announce_demand(struct wait *wait) {
    struct bfc_demand demand = {wait->call->bytes, wait->turn_ns, wait->free_bytes};
    wait->announced = true;
    bfc_announce(wait->call->arena, wait->job, wait->jobs, demand);
}

/* The oldest of another process; 0 bytes: there is none. */
static uint64_t bytes_of_next(const struct wait *wait) {
    const struct bfc_waiting *next = NULL;
    for (size_t i = 0; i < wait->waiters; i++)
        if (wait->all[i].pid != wait->published->pid &&
            (!next || wait->all[i].since_ns < next->since_ns))
            next = &wait->all[i];
    return next ? next->bytes : 0;
}

/* Until the next one looks: so that what is freed meanwhile is not lost to it. */
static void announce_next(const struct wait *wait) {
    const struct bfc_arena *arena = wait->call->arena;
    struct bfc_demand demand = {bytes_of_next(wait), bfc_kernel_now_ns(),
                                free_on_device(wait->call)};
    bfc_announce(arena, wait->job, wait->jobs, demand);
    if (demand.bytes)
        bfc_announce_here(arena, demand.bytes);
}

/* The next one in the queue, wherever it is, looks at once. */
static void leave_queue(const struct wait *wait) {
    if (wait->announced)
        announce_next(wait);
    give_slot_back(wait);
    bfc_waiters_wake(wait->published);
    bfc_other_jobs_wake();
}

/* ---- the wait ---- */

static void log_begun(const struct bfc_call *call, double seconds) {
    static bool said;
    bool first = !bfc_exchange_relaxed(&said, true);
    bfc_log(first ? BFC_LOG_ERROR : BFC_LOG_INFO,
            "device %d: waits up to %g s for %s that other jobs use (BFC_WAIT)",
            (int)call->arena->device, seconds, BFC_BYTES(call->bytes));
}

/* By the driver's count; with what this process has past its pools, which nothing tells apart. */
static uint64_t held_by_others(const struct bfc_call *call) {
    size_t free_bytes, total;
    if (!call->driver->cuMemGetInfo_v2 ||
        call->driver->cuMemGetInfo_v2(&free_bytes, &total) != CUDA_SUCCESS)
        return 0;
    uint64_t own =
        bfc_load_relaxed(&call->arena->on->reserved) + bfc_rounded_up_on(call->arena->device);
    return bfc_subtract_saturating(total, free_bytes + own);
}

/* Of each device: what others held when a wait ended in vain in which no other job was seen; 0:
 * there was none. It may be this process's own: it is not waited for again until it changes. */
enum { MOST_DEVICES = 64 };
static uint64_t in_vain[MOST_DEVICES]; /* atomic */

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

/* What others hold is enough, and not known to stay: else a wait is in vain from the start. */
static bool others_hold_enough(const struct bfc_call *call) {
    uint64_t lacks = bfc_call_device_lacks(call), held = held_by_others(call);
    return lacks == 0 || (lacks <= held && !was_in_vain(call, held));
}

static bool must_end(const struct bfc_call *call) {
    return bfc_background_is_over() || bfc_load_seq_cst(&call->arena->closers) ||
           bfc_load_acquire(&call->arena->ended) || !bfc_process_if_made();
}

/* As the kernel lays it out; asked by itself, since a program may have a sigaction of its own. */
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

/* A futex with a timeout ends whatever the handler asked for, and nothing tells which one ran. */
static bool signals_may_interrupt(void) {
    sigset_t blocked;
    if (sigprocmask(SIG_SETMASK, NULL, &blocked) != 0) /* in Linux the thread's own */
        return true;
    for (int number = 1; number <= SIGRTMAX; number++)
        if (signal_interrupts(number, &blocked))
            return true;
    return false;
}

/* False: a signal handler of the program's has run that may not restart system calls. */
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
        bool stuck = was_stuck && wait->turn.is_stuck && !others_gave(wait);
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
