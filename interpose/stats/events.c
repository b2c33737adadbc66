/* Events and histograms of the segment: the parts of the writer that run rarely. */
#include "interpose/stats/events.h"

#include <time.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "interpose/host/thread_exit.h"
#include "interpose/stats/published_segment.h"

/* atomic: which lanes have an owner, one bit each */
static uint32_t lanes_taken;

__thread struct bfc_events_thread bfc_events_thread INITIAL_EXEC;

static uint64_t us_since_creation(const struct bfc_segment_header *header, uint64_t now_ns) {
    return now_ns > header->created_ns ? (now_ns - header->created_ns) / 1000 : 0;
}

static void advance_time(uint64_t us) {
    uint64_t when = bfc_event_what(BFC_EVENT_NONE, 0, us);
    if (when > bfc_events_thread.when)
        bfc_events_thread.when = when;
}

/* A thread's first calls are timed one in BFC_LATENCY_SAMPLING, later ones one in SELDOM. Both are
 * primes, so that timed calls do not keep step with loops. */
enum {
    SELDOM = 241,
    TIMED_CLOSELY = BFC_LATENCY_CLOSELY / BFC_LATENCY_SAMPLING,
};
_Static_assert(SELDOM / BFC_LATENCY_SAMPLING + 1 == BFC_LATENCY_WEIGHT,
               "what a timed call stands for");

uint64_t bfc_events_clock(enum bfc_timed which) {
    bool closely = bfc_events_thread.timed[which] < TIMED_CLOSELY;
    bfc_events_thread.timed[which] += closely;
    bfc_events_thread.until_timed[which] = (closely ? BFC_LATENCY_SAMPLING : SELDOM) - 1;
    return bfc_now_ns();
}

/* Counts the latency of a call that was timed from `start` on and has succeeded. */
void bfc_events_add_latency(enum bfc_timed which, uint64_t *bins, uint64_t start) {
    uint64_t took = bfc_now_ns() - start;
    uint64_t weight = bfc_events_thread.timed[which] < TIMED_CLOSELY ? 1 : BFC_LATENCY_WEIGHT;
    bfc_fetch_add_relaxed(&bins[bfc_latency_bin(took)], weight);
}

/* A batch's slots are adjacent, since the ring of events holds a whole number of batches. */
struct bfc_event *bfc_events_take_batch(struct bfc_segment_header *header) {
    uint64_t number = bfc_fetch_add_relaxed(&header->next_event, BFC_EVENT_BATCH);
    char *events = (char *)header + BFC_SEGMENT_EVENTS_OFFSET;
    bfc_events_thread.event = number;
    bfc_events_thread.batch_end = number + BFC_EVENT_BATCH;
    bfc_events_thread.slot = (struct bfc_event *)(void *)events + number % BFC_EVENTS;
    advance_time(us_since_creation(header, bfc_read_clock(CLOCK_REALTIME_COARSE)));
    return bfc_events_thread.slot;
}

void bfc_events_add_landmark(const struct bfc_stats_sink *sink, enum bfc_event_kind kind,
                             uint64_t address, uint64_t bytes) {
    struct bfc_segment_header *header = sink ? sink->segment : bfc_segment_published();
    if (!header)
        return;
    uint64_t pool = sink ? sink->event_pool : bfc_event_what(BFC_EVENT_NONE, 63, 0);
    advance_time(us_since_creation(header, bfc_read_clock(CLOCK_REALTIME)));
    bfc_events_add(header, kind, pool, address, bytes);
    uint64_t number = bfc_fetch_add_relaxed(&header->next_landmark, 1);
    char *landmarks = (char *)header + BFC_SEGMENT_LANDMARKS_OFFSET;
    bfc_events_write((struct bfc_event *)(void *)landmarks + number % BFC_LANDMARKS, number,
                     bfc_events_thread.when | pool | (uint64_t)kind, address, bytes);
}

static void give_lane_back(void *unused) {
    (void)unused;
    unsigned lane =
        (bfc_events_thread.lane - BFC_LANE_OFFSET(0)) / (unsigned)sizeof(struct bfc_lane);
    bfc_events_thread.gives_lane_back = false;
    bfc_events_thread.lane = 0;
    bfc_fetch_and_release(&lanes_taken, ~(1u << lane));
}

/* Gives the calling thread a lane of its own, or the last one, which many threads share. */
static void take_lane(void) {
    uint32_t taken = bfc_load_relaxed(&lanes_taken);
    bfc_events_thread.lane = BFC_SHARED_LANE;
    while (taken != (1u << (BFC_LANES - 1)) - 1) {
        unsigned lane = (unsigned)__builtin_ctz(~taken);
        /* A lane may have had an owner before, whose last counts this acquire makes visible. */
        if (bfc_compare_exchange_acquire(&lanes_taken, &taken, taken | 1u << lane)) {
            bfc_events_thread.lane = BFC_LANE_OFFSET(lane);
            bfc_at_thread_exit(&bfc_events_thread.gives_lane_back, give_lane_back);
            return;
        }
    }
}

uint64_t bfc_events_count_slowly(struct bfc_segment_pool *section, size_t offset) {
    if (!bfc_events_thread.lane)
        take_lane();
    char *lane = (char *)section + bfc_events_thread.lane;
    return bfc_add_fetch_relaxed((uint64_t *)(void *)(lane + offset), 1);
}
