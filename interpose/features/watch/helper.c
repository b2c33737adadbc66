#include "interpose/features/watch/watching.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/numbers.h"
#include "interpose/arena/arena.h"
#include "interpose/host/background.h"
#include "interpose/reuse/give_back.h"
#include "interpose/reuse/settle_arena.h"
#include "interpose/stats/events.h"
#include "interpose/stats/published_segment.h"
#include "segment/other_jobs.h"
#include "segment/queue.h"

/* BFC_TRIM_IDLE in nanoseconds; UINT64_MAX: idle regions are kept. Set before the helper thread
 * starts. */
static uint64_t trim_idle_ns = UINT64_MAX;

#define LEAST_PERIOD_NS ((uint64_t)10 * 1000 * 1000)
#define MOST_PERIOD_NS ((uint64_t)10 * 1000 * 1000 * 1000)

/* Returns how often the helper thread looks for idle regions: about four times within
 * BFC_TRIM_IDLE, so that a region goes back at most a quarter of that time too late. */
static uint64_t trim_period_ns(void) {
    return bfc_min(bfc_max(trim_idle_ns / 4, LEAST_PERIOD_NS), MOST_PERIOD_NS);
}

/* While other jobs wait for freed memory, the helper thread checks this often whether they still
 * do. */
#define AWAITED_PERIOD_NS ((uint64_t)250 * 1000 * 1000)

/* Returns how long the helper thread may sleep without a request; UINT64_MAX: until the next
 * request. */
static uint64_t longest_sleep_ns(void) {
    uint64_t ns = trim_idle_ns != UINT64_MAX ? trim_period_ns() : UINT64_MAX;
    return bfc_process_watches_frees() ? bfc_min(ns, AWAITED_PERIOD_NS) : ns;
}

static void futex_wait(uint32_t *word, uint32_t expected) {
    uint64_t ns = longest_sleep_ns();
    struct timespec time = bfc_timespec(ns);
    syscall(SYS_futex, word, FUTEX_WAIT, expected, ns != UINT64_MAX ? &time : NULL, NULL, 0);
}

static void trim_idle(void) {
    static uint64_t next_ns;
    uint64_t now = bfc_now_ns();
    if (trim_idle_ns == UINT64_MAX || now < next_ns || !bfc_background_begin())
        return;
    bfc_give_back_idle(trim_idle_ns, bfc_min(trim_period_ns(), BFC_NS_PER_SECOND));
    bfc_background_end();
    next_ns = now + trim_period_ns() / 2;
}

/*
 * The segment's `owner` is a robust futex: the kernel sets a flag in it when this thread ends, so
 * that other processes see that the job is gone. The thread's list of robust futexes is set up by
 * hand, because a pthread mutex has a layout that belongs to the C library, and the segment's
 * layout is published.
 */
static struct {
    struct robust_list_head head;
    struct robust_list entry;
} robust;

static void own_segment(struct bfc_segment_header *published) {
    robust.head.list.next = &robust.entry;
    robust.entry.next = &robust.head.list;
    robust.head.futex_offset = (long)((char *)&published->owner - (char *)&robust.entry);
    if (syscall(SYS_set_robust_list, &robust.head, sizeof robust.head) == 0)
        bfc_store_release(&published->owner, (uint32_t)syscall(SYS_gettid));
}

/* Finds out which fences of all pools are complete. Usually an allocation or a free does that; a
 * program that neither allocates nor frees any more does not, and what it freed last would stay
 * pending for ever. */
static void settle_arenas(void) {
    struct bfc_arena *arena = NULL;
    if (!bfc_background_begin())
        return;
    while ((arena = bfc_arena_next(arena)))
        if (!bfc_arena_is_host(arena))
            bfc_reuse_settle(arena);
    bfc_background_end();
}

/* Refreshes the map of the regions if a reader asked for it. After a refresh that took the time t,
 * requests within the next 100 t keep the old map, so that refreshing takes at most a hundredth of
 * one processor. */
static void serve_refresh(struct bfc_segment_header *published) {
    static uint32_t served;
    static uint64_t next_ns;
    uint32_t asked = bfc_load_acquire(&published->refresh_asked);
    uint64_t now = bfc_now_ns();
    if (asked == served)
        return;
    served = asked;
    if (now < next_ns)
        return;
    settle_arenas();
    bfc_occupancy_refresh();
    uint64_t end = bfc_now_ns();
    next_ns = end + 100 * (end - now);
}

static void serve_trim(struct bfc_segment_header *published) {
    uint64_t wanted = bfc_exchange_acq_rel(&published->request_bytes, 0);
    if (!wanted || !bfc_background_begin())
        return;
    uint64_t released = bfc_give_back_bytes(wanted);
    bfc_background_end();
    bfc_fetch_add_relaxed(&published->released_bytes, released);
    bfc_events_add_landmark(NULL, BFC_EVENT_TRIM, wanted, released);
}

/* atomic: whether memory was freed since the helper thread last woke the jobs that wait */
static bool memory_was_freed;

/* Jobs that wait for memory are woken at most this often, however often memory is freed. */
#define WAKE_PERIOD_NS (2L * 1000 * 1000)

void bfc_helper_wake_waiters(struct bfc_arena *arena, CUdeviceptr pointer, CUresult result,
                             bool may_wait) {
    (void)arena, (void)pointer, (void)result, (void)may_wait;
    struct bfc_segment_header *published =
        bfc_process_watches_frees() ? bfc_segment_published() : NULL;
    if (!published || bfc_exchange_acq_rel(&memory_was_freed, true))
        return;
    bfc_add_fetch_acq_rel(&published->request, 1);
    syscall(SYS_futex, &published->request, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void serve_waiters(struct bfc_segment_header *published) {
    bool awaited = bfc_waiters_exist(published);
    if (awaited != bfc_process_watches_frees())
        bfc_process_watch_frees(awaited);
    if (bfc_exchange_acq_rel(&memory_was_freed, false)) {
        bfc_waiters_wake(published);
        bfc_other_jobs_wake();
        bfc_nap(WAKE_PERIOD_NS);
    }
}

static void serve_requests(struct bfc_segment_header *published) {
    uint32_t seen = bfc_load_acquire(&published->request);
    if (seen == published->request_served) {
        futex_wait(&published->request, seen);
        return;
    }
    serve_trim(published);
    serve_refresh(published);
    BFC_TELL_FEATURES(reader_asked, published);
    bfc_store_release(&published->request_served, seen);
}

static void *run_helper(void *argument) {
    struct bfc_segment_header *published = argument;
    bfc_background_enter();
    own_segment(published);
    for (;;) {
        serve_requests(published);
        serve_waiters(published);
        trim_idle();
    }
    return NULL;
}

void bfc_helper_start(const struct bfc_process *process, struct bfc_segment_header *published) {
    if (process->options.trim_idle >= 0)
        trim_idle_ns = (uint64_t)(process->options.trim_idle * 1e9);
    if (!bfc_background_start(run_helper, published))
        bfc_log(BFC_LOG_WARN, "no helper thread: requests to give memory back go unanswered");
}
