/*
 * What the segment says about single calls: events, the histogram of sizes, sampled latencies.
 *
 * Written after the pool's call, by the thread that made it, without a lock and nearly without
 * atomic operations: a thread takes numbers of events in batches, counts in a lane that is its own
 * while there are enough, and looks at the clock once a batch (coarsely) and at few calls
 * (exactly). Without a segment only waits are counted. Thread-safe.
 */
#ifndef BFC_INTERPOSE_EVENTS_H
#define BFC_INTERPOSE_EVENTS_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "layout/segment.h"

/* Where one pool's calls are counted, and told of. */
struct bfc_stats_sink {
    struct bfc_segment_pool *section;   /* never NULL */
    struct bfc_segment_header *segment; /* holds the section; NULL: none is published */
    unsigned section_index;
    uint64_t event_pool; /* the index, as bfc_event_what places it */
};

/* A thread's own: what it needs so that it shares nothing with others. */
struct bfc_events_thread {
    struct bfc_event *slot;    /* of the event with the following number */
    uint64_t event, batch_end; /* numbers of events that are this thread's to use */
    uint64_t when;             /* of the last look at the clock, as bfc_event_what places it */
    uint32_t until_timed[2];   /* calls before the next one that is timed: allocations, frees */
    uint32_t timed[2];         /* of them, as far as that matters */
    uint32_t lane;             /* 0: none yet; else where its lane is in a section, in bytes */
    bool gives_lane_back;      /* at the thread's end */
};
extern __thread struct bfc_events_thread bfc_events_thread INITIAL_EXEC HIDDEN;

/* ---- time ---- */

enum bfc_timed { BFC_TIMED_ALLOCATIONS, BFC_TIMED_FREES };

uint64_t bfc_events_clock(enum bfc_timed which);

/* Before a call: its time, if it is one of those that are timed, else 0. */
static inline uint64_t bfc_events_start(enum bfc_timed which) {
    return LIKELY(bfc_events_thread.until_timed[which]--) ? 0 : bfc_events_clock(which);
}
/* Before a call of a function that has a copy for calls that are timed: whether this is one. The
 * copy begins with bfc_events_clock. */
static inline bool bfc_events_is_timed(enum bfc_timed which) {
    return UNLIKELY(!bfc_events_thread.until_timed[which]--);
}
static inline uint64_t bfc_events_allocate_start(void) {
    return bfc_events_start(BFC_TIMED_ALLOCATIONS);
}
static inline uint64_t bfc_events_free_start(void) {
    return bfc_events_start(BFC_TIMED_FREES);
}

void bfc_events_add_latency(enum bfc_timed which, uint64_t *bins, uint64_t start);

/* ---- counts ---- */

#define BFC_LANE_OFFSET(index)                                                                     \
    ((uint32_t)(offsetof(struct bfc_segment_pool, lanes) + (index) * sizeof(struct bfc_lane)))
#define BFC_SHARED_LANE BFC_LANE_OFFSET(BFC_LANES - 1)

/*
 * Adds 1 to a count, by the offset of that in a lane, in the calling thread's lane of a section;
 * returns what there was. A lane of the thread's own needs no atomic addition. A thread that has no
 * lane yet, and all threads that share the last one, take the slow way, by one comparison.
 */
uint64_t bfc_events_count_slowly(struct bfc_segment_pool *section, size_t offset);

static inline uint64_t bfc_events_count(struct bfc_segment_pool *section, size_t offset) {
    uint32_t lane = bfc_events_thread.lane;
    if (UNLIKELY(lane - 1 >= BFC_SHARED_LANE - 1))
        return bfc_events_count_slowly(section, offset);
    uint64_t *count = (uint64_t *)(void *)((char *)section + lane + offset), before = *count;
    bfc_store_relaxed(count, before + 1);
    return before;
}

/* ---- events ---- */

/* The next event's slot, after one look at the clock. */
struct bfc_event *bfc_events_take_batch(struct bfc_segment_header *header);

/*
 * A reader takes an event only if its stamp was the expected one before and after the copy: the
 * stamp is gone before a field changes, and comes back after the last one.
 */
static inline void bfc_events_write(struct bfc_event *slot, uint64_t number, uint64_t what,
                                    uint64_t address, uint64_t bytes) {
    bfc_store_relaxed(&slot->stamp, 0);
    bfc_barrier_release();
    bfc_store_relaxed(&slot->what, what);
    bfc_store_relaxed(&slot->address, address);
    bfc_store_relaxed(&slot->bytes, bytes);
    bfc_store_release(&slot->stamp, number + 1);
}

/* A thread that paused may find that the ring has gone round since it took its numbers. */
static inline void bfc_events_add(struct bfc_segment_header *header, enum bfc_event_kind kind,
                                  uint64_t pool, uint64_t address, uint64_t bytes) {
    struct bfc_event *slot = bfc_events_thread.slot;
    if (UNLIKELY(bfc_events_thread.event == bfc_events_thread.batch_end) ||
        UNLIKELY(bfc_load_relaxed(&slot->stamp) > bfc_events_thread.event))
        slot = bfc_events_take_batch(header);
    uint64_t number = bfc_events_thread.event++, what = pool | (uint64_t)kind;
    bfc_events_thread.slot = slot + 1;
    bfc_events_write(slot, number, bfc_events_thread.when | what, address, bytes);
}

/* ---- calls ---- */

/* After it has succeeded; `bin`: of its size; `start` is what bfc_events_…_start returned. */
static ALWAYS_INLINE void bfc_events_add_allocation(const struct bfc_stats_sink *sink,
                                                    CUdeviceptr pointer, size_t bytes, unsigned bin,
                                                    uint64_t start) {
    struct bfc_segment_header *header = sink->segment;
    if (UNLIKELY(!header))
        return;
    if (UNLIKELY(start))
        bfc_events_add_latency(BFC_TIMED_ALLOCATIONS, sink->section->allocate_latency, start);
    bfc_events_count(sink->section, offsetof(struct bfc_lane, sizes) + bin * sizeof(uint64_t));
    bfc_events_add(header, BFC_EVENT_ALLOCATE, sink->event_pool, pointer, bytes);
}

static ALWAYS_INLINE void bfc_events_add_free(const struct bfc_stats_sink *sink,
                                              CUdeviceptr pointer, uint64_t start) {
    struct bfc_segment_header *header = sink->segment;
    if (UNLIKELY(!header))
        return;
    if (UNLIKELY(start))
        bfc_events_add_latency(BFC_TIMED_FREES, sink->section->free_latency, start);
    bfc_events_add(header, BFC_EVENT_FREE, sink->event_pool, pointer, 0);
}

/* A wait of the host for a free: how many of the lane there were before it. */
static inline uint64_t bfc_events_count_wait(const struct bfc_stats_sink *sink) {
    return bfc_events_count(sink->section, offsetof(struct bfc_lane, host_waits));
}

/* Anything rarer; `sink` may be NULL: of all pools. */
void bfc_events_add_landmark(const struct bfc_stats_sink *sink, enum bfc_event_kind kind,
                             uint64_t address, uint64_t bytes);

#endif
