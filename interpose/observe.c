/* Events and histograms of the segment: the writer. */
#include "interpose/observe.h"

#include <time.h>

#include "interpose/segment.h"

#define HOT inline __attribute__((always_inline))

enum { SHARED_LANE = BFC_SIZE_LANES - 1 };

/* Lanes that have an owner, one bit each. */
static uint32_t lanes_taken;

__thread struct bfc_observer bfc_observer __attribute__((tls_model("initial-exec")));

/* ---- time ---- */

static uint64_t read_clock(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t us_since_creation(const struct bfc_segment_header *header, uint64_t now_ns) {
    return now_ns > header->created_ns ? (now_ns - header->created_ns) / 1000 : 0;
}

static void advance_time(uint64_t us) {
    if (us > bfc_observer.now_us)
        bfc_observer.now_us = us;
}

uint64_t bfc_observe_clock(unsigned which) {
    bfc_observer.until_timed[which] = BFC_LATENCY_SAMPLING - 1;
    return read_clock(CLOCK_MONOTONIC);
}

static __attribute__((noinline)) void add_latency(uint64_t *bins, uint64_t start) {
    uint64_t took = read_clock(CLOCK_MONOTONIC) - start;
    __atomic_fetch_add(&bins[bfc_latency_bin(took)], 1, __ATOMIC_RELAXED);
}

/* ---- events ---- */

/*
 * A reader takes an event only if its stamp was the expected one before and after the copy: the
 * stamp is gone before a field changes, and comes back after the last one.
 */
static HOT void write_event(struct bfc_event *slot, uint64_t number, uint64_t what,
                            uint64_t address, uint64_t bytes) {
    __atomic_store_n(&slot->stamp, 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&slot->what, what, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->address, address, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->bytes, bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->stamp, number + 1, __ATOMIC_RELEASE);
}

static struct bfc_event *slot_of(struct bfc_segment_header *header, uint64_t number) {
    char *events = (char *)header + BFC_SEGMENT_EVENTS_OFFSET;
    return (struct bfc_event *)(void *)events + number % BFC_EVENTS;
}

static __attribute__((noinline)) void take_batch(struct bfc_segment_header *header) {
    bfc_observer.event = __atomic_fetch_add(&header->next_event, BFC_EVENT_BATCH, __ATOMIC_RELAXED);
    bfc_observer.batch_end = bfc_observer.event + BFC_EVENT_BATCH;
    advance_time(us_since_creation(header, read_clock(CLOCK_REALTIME_COARSE)));
}

/* A thread that paused may find that the ring has gone round since it took its numbers. */
static HOT void add_event(struct bfc_segment_header *header, enum bfc_event_kind kind,
                          unsigned pool, uint64_t address, uint64_t bytes) {
    if (bfc_observer.event == bfc_observer.batch_end ||
        __atomic_load_n(&slot_of(header, bfc_observer.event)->stamp, __ATOMIC_RELAXED) >
            bfc_observer.event)
        take_batch(header);
    write_event(slot_of(header, bfc_observer.event), bfc_observer.event,
                bfc_event_what(kind, pool, bfc_observer.now_us), address, bytes);
    bfc_observer.event++;
}

static void add_landmark(struct bfc_segment_header *header, uint64_t what, uint64_t address,
                         uint64_t bytes) {
    uint64_t number = __atomic_fetch_add(&header->next_landmark, 1, __ATOMIC_RELAXED);
    char *landmarks = (char *)header + BFC_SEGMENT_LANDMARKS_OFFSET;
    write_event((struct bfc_event *)(void *)landmarks + number % BFC_LANDMARKS, number, what,
                address, bytes);
}

/* ---- sizes ---- */

static __attribute__((noinline)) void take_lane(void) {
    uint32_t taken = __atomic_load_n(&lanes_taken, __ATOMIC_RELAXED);
    bfc_observer.lane = SHARED_LANE + 1;
    while (taken != (1u << SHARED_LANE) - 1) {
        unsigned lane = (unsigned)__builtin_ctz(~taken);
        /* Acquire: the former owner's last counts are seen. */
        if (__atomic_compare_exchange_n(&lanes_taken, &taken, taken | 1u << lane, false,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            bfc_observer.lane = lane + 1;
            return;
        }
    }
}

void bfc_observe_thread_end(void) {
    if (bfc_observer.lane && bfc_observer.lane != SHARED_LANE + 1)
        __atomic_fetch_and(&lanes_taken, ~(1u << (bfc_observer.lane - 1)), __ATOMIC_RELEASE);
    bfc_observer.lane = 0;
}

/* A lane with one owner needs no atomic addition. */
static HOT void count_size(struct bfc_segment_pool *section, size_t bytes) {
    if (__builtin_expect(!bfc_observer.lane, 0))
        take_lane();
    uint64_t *count = &section->sizes[bfc_observer.lane - 1][bfc_size_bin(bytes)];
    if (__builtin_expect(bfc_observer.lane == SHARED_LANE + 1, 0))
        __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
    else
        __atomic_store_n(count, *count + 1, __ATOMIC_RELAXED);
}

/* ---- calls ---- */

void bfc_observe_allocation(struct bfc_domain *domain, CUdeviceptr pointer, size_t bytes,
                            uint64_t start) {
    struct bfc_segment_header *header = domain->segment;
    if (!header)
        return;
    if (__builtin_expect(start != 0, 0))
        add_latency(domain->section->allocate_latency, start);
    count_size(domain->section, bytes);
    add_event(header, BFC_EVENT_ALLOCATE, domain->section_index, pointer, bytes);
}

void bfc_observe_free(struct bfc_domain *domain, CUdeviceptr pointer, uint64_t start) {
    struct bfc_segment_header *header = domain->segment;
    if (!header)
        return;
    if (__builtin_expect(start != 0, 0))
        add_latency(domain->section->free_latency, start);
    add_event(header, BFC_EVENT_FREE, domain->section_index, pointer, 0);
}

void bfc_observe_landmark(const struct bfc_domain *domain, enum bfc_event_kind kind,
                          uint64_t address, uint64_t bytes) {
    struct bfc_segment_header *header = domain ? domain->segment : bfc_segment_published();
    if (!header)
        return;
    unsigned pool = domain ? domain->section_index : 63;
    advance_time(us_since_creation(header, read_clock(CLOCK_REALTIME)));
    add_event(header, kind, pool, address, bytes);
    add_landmark(header, bfc_event_what(kind, pool, bfc_observer.now_us), address, bytes);
}
