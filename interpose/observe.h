/*
 * What the segment says about single calls: events, the histogram of sizes, sampled latencies.
 *
 * Written after the pool's call, by the thread that made it, without a lock and nearly without
 * atomic operations: a thread takes numbers of events in batches, counts sizes in a lane that is
 * its own while there are enough, and looks at the clock once a batch (coarsely) and at one call in
 * BFC_LATENCY_SAMPLING (exactly). Without a segment nothing is done. Thread-safe.
 */
#ifndef BFC_INTERPOSE_OBSERVE_H
#define BFC_INTERPOSE_OBSERVE_H

#include "interpose/domain.h"

/* A thread's own: what it needs so that it shares nothing with others. */
struct bfc_observer {
    uint64_t event, batch_end; /* numbers of events that are this thread's to use */
    uint64_t now_us;           /* of the last look at the clock, since the segment's creation */
    uint32_t until_timed[2];   /* calls before the next one that is timed: allocations, frees */
    uint32_t lane;             /* 0: none yet; else lane + 1 */
};
extern __thread struct bfc_observer bfc_observer __attribute__((tls_model("initial-exec")));

uint64_t bfc_observe_clock(unsigned which);

/* Before a call: its time, if it is one of those that are timed, else 0. */
static inline uint64_t bfc_observe_start(unsigned which) {
    return __builtin_expect(bfc_observer.until_timed[which]-- != 0, 1) ? 0
                                                                       : bfc_observe_clock(which);
}
static inline uint64_t bfc_observe_allocate_start(void) {
    return bfc_observe_start(0);
}
static inline uint64_t bfc_observe_free_start(void) {
    return bfc_observe_start(1);
}

/* After it has succeeded; `start` is what the above returned. */
void bfc_observe_allocation(struct bfc_domain *domain, CUdeviceptr pointer, size_t bytes,
                            uint64_t start);
void bfc_observe_free(struct bfc_domain *domain, CUdeviceptr pointer, uint64_t start);

/* Anything rarer; `domain` may be NULL: of all pools. */
void bfc_observe_landmark(const struct bfc_domain *domain, enum bfc_event_kind kind,
                          uint64_t address, uint64_t bytes);

/* The calling thread ends, or will not allocate for a while: its lane is for others. */
void bfc_observe_thread_end(void);

#endif
