/* Events and histograms of the segment: the writer. */
#include "interpose/observe.h"

#include <time.h>

#include "interpose/segment.h"

#define HOT inline __attribute__((always_inline))

enum { SHARED_LANE = BFC_SIZE_LANES - 1 };

/* Lanes that have an owner, one bit each. */
static uint32_t lanes_taken;

static __thread struct {
    uint64_t event, batch_end; /* numbers of events that are this thread's to use */
    uint64_t now_us;           /* of the last look at the clock, since the segment's creation */
    uint32_t until_timed[2];   /* calls before the next one that is timed: allocations, frees */
    uint32_t lane;             /* 0: none yet; else lane + 1 */
} thread __attribute__((tls_model("initial-exec")));

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
    if (us > thread.now_us)
        thread.now_us = us;
}

static HOT uint64_t start_call(unsigned which) {
    if (__builtin_expect(thread.until_timed[which]-- != 0, 1))
        return 0;
    thread.until_timed[which] = BFC_LATENCY_SAMPLING - 1;
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t bfc_observe_allocate_start(void) {
    return start_call(0);
}

uint64_t bfc_observe_free_start(void) {
    return start_call(1);
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
    thread.event = __atomic_fetch_add(&header->next_event, BFC_EVENT_BATCH, __ATOMIC_RELAXED);
    thread.batch_end = thread.event + BFC_EVENT_BATCH;
    advance_time(us_since_creation(header, read_clock(CLOCK_REALTIME_COARSE)));
}

/* A thread that paused may find that the ring has gone round since it took its numbers. */
static HOT void add_event(struct bfc_segment_header *header, enum bfc_event_kind kind,
                          unsigned pool, uint64_t address, uint64_t bytes) {
    if (thread.event == thread.batch_end ||
        __atomic_load_n(&slot_of(header, thread.event)->stamp, __ATOMIC_RELAXED) > thread.event)
        take_batch(header);
    write_event(slot_of(header, thread.event), thread.event,
                bfc_event_what(kind, pool, thread.now_us), address, bytes);
    thread.event++;
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
    thread.lane = SHARED_LANE + 1;
    while (taken != (1u << SHARED_LANE) - 1) {
        unsigned lane = (unsigned)__builtin_ctz(~taken);
        /* Acquire: the former owner's last counts are seen. */
        if (__atomic_compare_exchange_n(&lanes_taken, &taken, taken | 1u << lane, false,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            thread.lane = lane + 1;
            return;
        }
    }
}

void bfc_observe_thread_end(void) {
    if (thread.lane && thread.lane != SHARED_LANE + 1)
        __atomic_fetch_and(&lanes_taken, ~(1u << (thread.lane - 1)), __ATOMIC_RELEASE);
    thread.lane = 0;
}

/* A lane with one owner needs no atomic addition. */
static HOT void count_size(struct bfc_segment_pool *section, size_t bytes) {
    if (__builtin_expect(!thread.lane, 0))
        take_lane();
    uint64_t *count = &section->sizes[thread.lane - 1][bfc_size_bin(bytes)];
    if (__builtin_expect(thread.lane == SHARED_LANE + 1, 0))
        __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
    else
        __atomic_store_n(count, *count + 1, __ATOMIC_RELAXED);
}

/* ---- calls ---- */

static HOT unsigned index_of(const struct bfc_segment_header *header,
                             const struct bfc_segment_pool *section) {
    const char *pools = (const char *)header + BFC_SEGMENT_POOLS_OFFSET;
    return (unsigned)((size_t)((const char *)section - pools) / sizeof *section);
}

/* The segment, if the domain counts in it. */
static HOT struct bfc_segment_header *segment_of(const struct bfc_domain *domain) {
    return domain->section == &domain->own_section ? NULL : bfc_segment_published();
}

void bfc_observe_allocation(struct bfc_domain *domain, CUdeviceptr pointer, size_t bytes,
                            uint64_t start) {
    struct bfc_segment_header *header = segment_of(domain);
    if (!header)
        return;
    if (__builtin_expect(start != 0, 0))
        add_latency(domain->section->allocate_latency, start);
    count_size(domain->section, bytes);
    add_event(header, BFC_EVENT_ALLOCATE, index_of(header, domain->section), pointer, bytes);
}

void bfc_observe_free(struct bfc_domain *domain, CUdeviceptr pointer, uint64_t start) {
    struct bfc_segment_header *header = segment_of(domain);
    if (!header)
        return;
    if (__builtin_expect(start != 0, 0))
        add_latency(domain->section->free_latency, start);
    add_event(header, BFC_EVENT_FREE, index_of(header, domain->section), pointer, 0);
}

void bfc_observe_landmark(const struct bfc_domain *domain, enum bfc_event_kind kind,
                          uint64_t address, uint64_t bytes) {
    struct bfc_segment_header *header = domain ? segment_of(domain) : bfc_segment_published();
    if (!header)
        return;
    unsigned pool = domain ? index_of(header, domain->section) : 63;
    advance_time(us_since_creation(header, read_clock(CLOCK_REALTIME)));
    add_event(header, kind, pool, address, bytes);
    add_landmark(header, bfc_event_what(kind, pool, thread.now_us), address, bytes);
}
