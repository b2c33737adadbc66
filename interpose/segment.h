/*
 * The segment that this process publishes, and the helper thread that answers requests from it.
 *
 * Made together at the first allocation that is seen. Where shared memory is not to be had the job
 * runs on without one.
 */
#ifndef BFC_INTERPOSE_SEGMENT_H
#define BFC_INTERPOSE_SEGMENT_H

#include "interpose/process.h"
#include "interpose/segment_layout.h"

/* What the helper thread can be asked for. */
struct bfc_segment_services {
    uint64_t (*trim)(uint64_t bytes);        /* gives memory back; returns how much went */
    void (*refresh)(void);                   /* brings the map and largest_free up to date */
    uint64_t (*trim_idle)(uint64_t idle_ns); /* gives back what was idle for so long */
};

/*
 * Makes the segment, once, and starts the helper thread. Call it before the first pool is made.
 * `services` is kept. Thread-safe.
 */
void bfc_segment_open(const struct bfc_process *process,
                      const struct bfc_segment_services *services);

/* The segment, or NULL: none is published, or this is a forked child. */
struct bfc_segment_header *bfc_segment_published(void);

/* Process-wide counters: the segment's, or where they are kept without one. */
struct bfc_segment_header *bfc_segment_counters(void);

/* The index of a section that bfc_segment_take_section gave. */
unsigned bfc_segment_section_index(const struct bfc_segment_pool *section);

/*
 * A section for a new pool: an unused one, else one whose context has ended, its counts added to
 * the process's. NULL when there is none. The caller has the domains' lock.
 */
struct bfc_segment_pool *bfc_segment_take_section(void);

/* Gives it back once nothing writes to it any more; its state and counts stay for readers. */
void bfc_segment_return_section(struct bfc_segment_pool *section);

/* Counts what did not go through a pool. Relaxed: each word stands for itself. */
void bfc_count_forwarded_allocation(enum bfc_forward_reason reason);
void bfc_count_forwarded_free(enum bfc_forward_reason reason);
void bfc_count_bypassed(enum bfc_bypass_kind kind, uint64_t bytes);

#endif
