/* The helper thread. */
#include "interpose/features/watch/helper.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/numbers.h"
#include "interpose/features/watch/occupancy.h"
#include "interpose/host/background.h"
#include "interpose/reuse/give_back.h"
#include "interpose/stats/events.h"
#include "interpose/stats/published_segment.h"
#include "interpose/table/feature.h"
#include "segment/other_jobs.h"
#include "segment/queue.h"

/* BFC_TRIM_IDLE, in nanoseconds; UINT64_MAX: none. Set before the helper starts. */
static uint64_t trim_idle_ns = UINT64_MAX;

/* Four looks in the time after which a region goes back, but neither many nor few. */
#define FEWEST_NS_A_LOOK ((uint64_t)10 * 1000 * 1000)
#define MOST_NS_A_LOOK ((uint64_t)10 * 1000 * 1000 * 1000)

static uint64_t ns_a_look(void) {
    uint64_t quarter = trim_idle_ns / 4;
    quarter = quarter > FEWEST_NS_A_LOOK ? quarter : FEWEST_NS_A_LOOK;
    return quarter < MOST_NS_A_LOOK ? quarter : MOST_NS_A_LOOK;
}

/* While somebody waits for what is freed, to see when that is over. */
#define AWAITED_NS_A_LOOK ((uint64_t)250 * 1000 * 1000)

/* UINT64_MAX: there is nothing to look for. */
static uint64_t ns_to_next_look(void) {
    uint64_t ns = trim_idle_ns != UINT64_MAX ? ns_a_look() : UINT64_MAX;
    return bfc_process_watches_frees() ? bfc_min(ns, AWAITED_NS_A_LOOK) : ns;
}

static void futex_wait(uint32_t *word, uint32_t expected) {
    uint64_t ns = ns_to_next_look();
    struct timespec time = bfc_timespec(ns);
    syscall(SYS_futex, word, FUTEX_WAIT, expected, ns != UINT64_MAX ? &time : NULL, NULL, 0);
}

static void trim_idle(void) {
    static uint64_t next_ns;
    uint64_t now = bfc_now_ns();
    if (trim_idle_ns == UINT64_MAX || now < next_ns || !bfc_background_begin())
        return;
    bfc_give_back_idle(trim_idle_ns, bfc_min(ns_a_look(), BFC_NS_PER_SECOND));
    bfc_background_end();
    next_ns = now + ns_a_look() / 2;
}

/*
 * `owner` is a futex on this thread's robust list, set up by hand, since a mutex of the C library's
 * own layout has no place in a published one: the kernel flags it when this thread, and so the
 * process, is gone.
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

/*
 * The first look of a reader is answered at once. Those who look without pause get the last
 * picture, so that refreshing takes at most a hundredth of one processor.
 */
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

/* ---- those who wait for what is freed ---- */

static bool told; /* atomic: something was freed since the helper last told */

/* Those who wait are told at most this often, however often something is freed. */
#define TELL_EVERY_NS (2L * 1000 * 1000)

void bfc_helper_tell_waiters(void) {
    struct bfc_segment_header *published = bfc_segment_published();
    if (!published || bfc_exchange_acq_rel(&told, true))
        return;
    bfc_add_fetch_acq_rel(&published->request, 1);
    syscall(SYS_futex, &published->request, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void serve_waiters(struct bfc_segment_header *published) {
    bool awaited = bfc_waiters_exist(published);
    if (awaited != bfc_process_watches_frees())
        bfc_process_watch_frees(awaited);
    if (bfc_exchange_acq_rel(&told, false)) {
        bfc_waiters_wake(published);
        bfc_other_jobs_wake();
        bfc_nap(TELL_EVERY_NS);
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
