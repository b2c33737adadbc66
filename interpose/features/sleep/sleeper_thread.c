/*
 * The thread that puts the process to sleep: when the program has been idle, when another job has
 * waited long enough for this process's memory, and on request. It starts with the process if the
 * settings ask for that, else with the first request.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/numbers.h"
#include "interpose/arena/arena.h"
#include "interpose/config/log.h"
#include "interpose/config/process.h"
#include "interpose/features/sleep/sleep.h"
#include "interpose/features/sleep/store.h"
#include "interpose/host/background.h"
#include "interpose/table/counter.h"
#include "segment/other_jobs.h"
#include "segment/queue.h"

#define MS UINT64_C(1000000)
/* With BFC_SLEEP_QUANTUM: how often the thread checks whether another job waits for memory. Without
 * it, the thread checks four times within BFC_SLEEP_IDLE whether the program is idle. */
#define DUE_PERIOD_NS (20 * MS)
#define LEAST_PERIOD_NS (5 * MS)
/* If another job asks this one to sleep before BFC_SLEEP_IDLE has passed, this job falls asleep
 * only if it has been awake for BFC_SLEEP_QUANTUM, and idle for both LEAST_IDLE_NS and IDLE_FALLS
 * times as long as it last took to fall asleep: it should have been idle for about the time that
 * falling asleep and waking will take. */
#define LEAST_IDLE_NS (100 * MS)
#define IDLE_FALLS 2
/* A job that works stays awake for at least TURN_FALLS times as long as it last took to fall
 * asleep. So most of the time is work, not copies, however short BFC_SLEEP_QUANTUM is. */
#define TURN_FALLS 8

static uint64_t idle_ns = UINT64_MAX,
                quantum_ns =
                    UINT64_MAX; /* BFC_SLEEP_IDLE and BFC_SLEEP_QUANTUM; UINT64_MAX: not set */
static uint32_t asked;          /* how often other processes have made requests; a futex */
static bool started;            /* atomic: whether the thread runs */

/* The sum of submissions that the thread has seen last, when that sum last changed, and when the
 * thread may next try to put the process to sleep (both by bfc_kernel_now_ns). */
static uint64_t submissions, active_ns, retry_ns;

/* When the process last got memory from other jobs, by bfc_kernel_now_ns, and how often it had by
 * then (look_at_memory). */
static uint64_t held_ns, times_served;

static void look_at_submissions(void) {
    uint64_t sum = 0;
    bool still = bfc_counter && bfc_counter->count(&sum) && sum == submissions;
    submissions = sum;
    if (!still)
        active_ns = bfc_kernel_now_ns();
    bfc_store_relaxed(&bfc_sleep_told()->active_ns, active_ns);
}

/* While the process waits for memory of other jobs, it does not have the device: its turn begins
 * when it gets the memory. */
static void look_at_memory(void) {
    struct bfc_arena *arena = NULL;
    uint64_t served = 0;
    while ((arena = bfc_arena_next(arena))) {
        const struct bfc_rung_counts *rungs = arena->stats.section->rungs;
        served += bfc_load_relaxed(&rungs[BFC_RUNG_SLEEP].saved) +
                  bfc_load_relaxed(&rungs[BFC_RUNG_WAIT].saved);
    }
    if (served != times_served)
        held_ns = bfc_kernel_now_ns();
    times_served = served;
}

/* A wake counts as work: the job stays awake for BFC_SLEEP_IDLE even if it was woken on request, or
 * for an allocation, and has submitted nothing yet. */
static uint64_t idle_for(void) {
    uint64_t woke = bfc_load_relaxed(&bfc_sleep_told()->woke_ns);
    return bfc_kernel_now_ns() - bfc_max(active_ns, woke);
}

static bool was_awake_for(uint64_t ns) {
    uint64_t woke = bfc_load_relaxed(&bfc_sleep_told()->woke_ns);
    return ns != UINT64_MAX && bfc_kernel_now_ns() - bfc_max(woke, held_ns) >= ns;
}

static bool turn_is_over(void) {
    return was_awake_for(quantum_ns) &&
           was_awake_for(TURN_FALLS * bfc_load_relaxed(&bfc_sleep_told()->fall_ns));
}

/* Whether a job that waits for memory (BFC_WAIT) wants memory of a pool of this process. */
static bool memory_is_due(void) {
    struct bfc_arena *arena = NULL;
    bool due = false;
    while ((arena = bfc_arena_next(arena)))
        due |= !bfc_arena_is_host(arena) && bfc_waiters_want(arena->stats.section).bytes != 0;
    return due;
}

static bool fall_asleep(bool forced) {
    if (!bfc_background_begin())
        return false;
    bool asleep = bfc_fall_asleep(forced);
    bfc_background_end();
    if (asleep)
        bfc_other_jobs_wake();
    return asleep;
}

/* Puts the process to sleep if the settings want that now. After a failed attempt the thread pauses
 * at least as long as the attempt took, since the next one would mostly fail for the same
 * reason. */
static void fall_if_due(void) {
    uint64_t now = bfc_kernel_now_ns();
    bool forced = turn_is_over() && memory_is_due();
    if (bfc_sleep_state() != BFC_SLEEP_AWAKE || now < retry_ns || (!forced && idle_for() < idle_ns))
        return;
    if (!fall_asleep(forced)) {
        uint64_t end = bfc_kernel_now_ns();
        uint64_t pause = bfc_min(bfc_max(idle_ns / 2, 10 * LEAST_PERIOD_NS), BFC_NS_PER_SECOND);
        retry_ns = end + bfc_max(pause, end - now);
    }
}

static bool may_serve_beggar(void) {
    uint64_t least = IDLE_FALLS * bfc_load_relaxed(&bfc_sleep_told()->fall_ns);
    return idle_for() >= idle_ns ||
           (was_awake_for(quantum_ns) && idle_for() >= bfc_max(LEAST_IDLE_NS, least));
}

static void wake_up(void) {
    if (!bfc_background_begin())
        return;
    bfc_wake_up();
    bfc_background_end();
}

static void serve_requests(void) {
    static uint32_t asleep_served, begged_served, wake_served;
    struct bfc_segment_sleep *told = bfc_sleep_told();
    uint32_t sleep = bfc_load_acquire(&told->asked), beg = bfc_load_acquire(&told->begged);
    uint32_t wake = bfc_load_acquire(&told->wake_asked);
    if (sleep != asleep_served)
        fall_asleep(false);
    else if (beg != begged_served && may_serve_beggar())
        fall_asleep(false);
    if (wake != wake_served)
        wake_up();
    asleep_served = sleep;
    begged_served = beg;
    wake_served = wake;
    bfc_store_release(&told->answered, sleep + beg + wake);
}

static uint64_t period_ns(void) {
    uint64_t ns = idle_ns == UINT64_MAX
                      ? UINT64_MAX
                      : bfc_min(bfc_max(idle_ns / 4, LEAST_PERIOD_NS), BFC_NS_PER_SECOND);
    return quantum_ns == UINT64_MAX ? ns : bfc_min(ns, DUE_PERIOD_NS);
}

static void *run_sleeper(void *unused) {
    (void)unused;
    bfc_background_enter();
    active_ns = bfc_kernel_now_ns();
    while (!bfc_background_is_over()) {
        uint32_t seen = bfc_load_acquire(&asked);
        look_at_submissions();
        look_at_memory();
        serve_requests();
        fall_if_due();
        bfc_sleep_forget_ended();
        struct timespec time = bfc_timespec(period_ns());
        syscall(SYS_futex, &asked, FUTEX_WAIT_PRIVATE, seen,
                period_ns() != UINT64_MAX ? &time : NULL, NULL, 0);
    }
    return NULL;
}

/* If the thread cannot be started, marks all requests as answered, with the reason, so that no
 * other process waits for an answer. */
static void start_thread(void) {
    struct bfc_segment_sleep *told = bfc_sleep_told();
    if (bfc_exchange_acq_rel(&started, true) || bfc_background_start(run_sleeper, NULL))
        return;
    bfc_store_release(&started, false);
    bfc_log(BFC_LOG_WARN, "no thread that puts the job to sleep");
    snprintf(told->why, sizeof told->why, "the process gets no thread for it");
    bfc_store_release(&told->answered, bfc_load_acquire(&told->asked) +
                                           bfc_load_acquire(&told->begged) +
                                           bfc_load_acquire(&told->wake_asked));
}

static uint64_t in_ns(double seconds) {
    return seconds < 0 ? UINT64_MAX : (uint64_t)(seconds * 1e9);
}

/* A folder that is missing now may be there when the job falls asleep, so that it is only told. */
static void check_place(const char *place) {
    int reason = errno, error = bfc_sleep_store_check(place);
    if (error)
        bfc_log(BFC_LOG_ERROR,
                "BFC_SLEEP_TO=%.128s: %s; the job cannot sleep: expected memory, or a folder in "
                "which files can be made",
                place, strerror(error));
    errno = reason;
}

void bfc_sleeper_begin(const struct bfc_process *process, struct bfc_segment_header *published) {
    (void)published;
    check_place(process->options.sleep_to);
    idle_ns = in_ns(process->options.sleep_idle);
    quantum_ns = in_ns(process->options.sleep_quantum);
    bfc_store_relaxed(&bfc_sleep_told()->woke_ns, bfc_kernel_now_ns());
    if (period_ns() != UINT64_MAX)
        start_thread();
}

void bfc_sleeper_asked(struct bfc_segment_header *published) {
    const struct bfc_segment_sleep *told = &published->sleep;
    if (!bfc_load_relaxed(&told->asked) && !bfc_load_relaxed(&told->begged) &&
        !bfc_load_relaxed(&told->wake_asked))
        return;
    start_thread();
    bfc_add_fetch_release(&asked, 1);
    syscall(SYS_futex, &asked, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
