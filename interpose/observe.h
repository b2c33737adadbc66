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

/* Before a call: its time, if it is one of those that are timed, else 0. */
uint64_t bfc_observe_allocate_start(void);
uint64_t bfc_observe_free_start(void);

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
