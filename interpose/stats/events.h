/*
 * What the segment says about single calls: events, the histogram of sizes, sampled latencies.
 *
 * A thread calls these functions after it has called the pool. They take no lock and hardly any
 * atomic operation: a thread takes event numbers in batches, counts in a lane of its own while
 * there are enough lanes, and reads the clock once a batch (coarsely) and at few calls (exactly).
 * Without a segment only waits and fences are counted. Thread-safe.
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

/* Where the calls of one pool are counted, and written as events. */
struct bfc_stats_sink {
    struct bfc_segment_pool *section;   /* the pool's counters; never NULL */
    struct bfc_segment_header *segment; /* holds the section; NULL: no segment is published */
    unsigned section_index;
    /* the pool's index, shifted to its place in an event's `what` (bfc_event_what) */
    uint64_t event_pool;
};

/* The state of one thread. As each thread has its own, threads hardly share anything. */
struct bfc_events_thread {
    struct bfc_event *slot; /* where the event number `event` is written */
    /* the thread's next event number, and the end of the numbers it took */
    uint64_t event, batch_end;
    /* when the clock was last read, shifted to its place in an event's `what` (bfc_event_what) */
    uint64_t when;
    /* how many calls come before the next one that is timed: allocations, frees */
    uint32_t until_timed[2];
    uint32_t timed[2];    /* how many calls were timed so far; counted only until calls are timed
                           * more seldom */
    uint32_t lane;        /* the offset of the thread's lane in a section; 0: it has none yet */
    bool gives_lane_back; /* whether the lane is given back at the thread's end */
};
extern __thread struct bfc_events_thread bfc_events_thread INITIAL_EXEC HIDDEN;

enum bfc_timed { BFC_TIMED_ALLOCATIONS, BFC_TIMED_FREES };

uint64_t bfc_events_clock(enum bfc_timed which);

/* Begins an allocation or free. Returns the time if it is to be timed, else 0. */
static inline uint64_t bfc_events_start(enum bfc_timed which) {
    return LIKELY(bfc_events_thread.until_timed[which]--) ? 0 : bfc_events_clock(which);
}
/* Begins an allocation or free, and returns whether it is to be timed. For callers that have one
 * function for timed calls, which begins with bfc_events_clock, and another for untimed ones. */
static inline bool bfc_events_is_timed(enum bfc_timed which) {
    return UNLIKELY(!bfc_events_thread.until_timed[which]--);
}

void bfc_events_add_latency(enum bfc_timed which, uint64_t *bins, uint64_t start);

#define BFC_LANE_OFFSET(index)                                                                     \
    ((uint32_t)(offsetof(struct bfc_segment_pool, lanes) + (index) * sizeof(struct bfc_lane)))
#define BFC_SHARED_LANE BFC_LANE_OFFSET(BFC_LANES - 1)

/* Adds 1 to the count at `offset` in the calling thread's lane of a section, and returns the count
 * after. A lane of the thread's own needs no atomic addition. A thread that has no lane yet, or
 * has the shared last lane, calls the slow function: one comparison finds both cases. */
uint64_t bfc_events_count_slowly(struct bfc_segment_pool *section, size_t offset);

static inline uint64_t bfc_events_count(struct bfc_segment_pool *section, size_t offset) {
    uint32_t lane = bfc_events_thread.lane;
    if (UNLIKELY(lane - 1 >= BFC_SHARED_LANE - 1))
        return bfc_events_count_slowly(section, offset);
    uint64_t *count = (uint64_t *)(void *)((char *)section + lane + offset);
    bfc_add_alone(count, 1);
    return *count;
}

/* Takes BFC_EVENT_BATCH event numbers and reads the clock. Returns the first one's slot. */
struct bfc_event *bfc_events_take_batch(struct bfc_segment_header *header);

/* A reader takes an event only if its stamp was the expected one before and after the reader copied
 * it. So the stamp is cleared before a field changes, and set after the last one. */
static inline void bfc_events_write(struct bfc_event *slot, uint64_t number, uint64_t what,
                                    uint64_t address, uint64_t bytes) {
    bfc_store_relaxed(&slot->stamp, 0);
    bfc_barrier_release();
    bfc_store_relaxed(&slot->what, what);
    bfc_store_relaxed(&slot->address, address);
    bfc_store_relaxed(&slot->bytes, bytes);
    bfc_store_release(&slot->stamp, number + 1);
}

/* If a thread has paused since it took its batch of numbers, other threads may have gone round the
 * ring and written to the same slots. Then the thread takes a new batch. */
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

/* Notes an allocation that succeeded. `bin` is the bin of its size; bfc_events_start returned
 * `start`. */
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

/* Counts a host wait for a free. Returns how many the lane has counted, this one included. */
static inline uint64_t bfc_events_count_wait(const struct bfc_stats_sink *sink) {
    return bfc_events_count(sink->section, offsetof(struct bfc_lane, host_waits));
}

/* Count a CUDA event that was recorded for a free, and a wait on the device for such an event. */
static inline void bfc_events_count_fence(const struct bfc_stats_sink *sink) {
    bfc_events_count(sink->section, offsetof(struct bfc_lane, fences));
}
static inline void bfc_events_count_device_wait(const struct bfc_stats_sink *sink) {
    bfc_events_count(sink->section, offsetof(struct bfc_lane, device_waits));
}

/* Adds an event that is neither an allocation nor a free. `sink` may be NULL if the event concerns
 * no pool in particular. */
void bfc_events_add_landmark(const struct bfc_stats_sink *sink, enum bfc_event_kind kind,
                             uint64_t address, uint64_t bytes);

#endif
