/*
 * The segment that this process publishes.
 *
 * Made at the first allocation that is seen. Where shared memory is not to be had the job runs on
 * without one. Thread-safe.
 */
#ifndef BFC_INTERPOSE_SEGMENT_H
#define BFC_INTERPOSE_SEGMENT_H

#include "interpose/config/process.h"
#include "layout/segment.h"

/*
 * Makes the segment, once; who does has `start_helper` called with it. Call it before the first
 * pool is made.
 */
void bfc_segment_open(const struct bfc_process *process,
                      void (*start_helper)(const struct bfc_process *process,
                                           struct bfc_segment_header *published));

/* The segment, or NULL: none is published, or this is a forked child. */
struct bfc_segment_header *bfc_segment_published(void);

/* Process-wide counters: the segment's, or where they are kept without one. */
struct bfc_segment_header *bfc_segment_counters(void);

/* The index of a section that bfc_segment_take_section gave. */
unsigned bfc_segment_section_index(const struct bfc_segment_pool *section);

/*
 * A section for a new pool: an unused one, else one whose context has ended, its counts added to
 * the process's. NULL when there is none.
 */
struct bfc_segment_pool *bfc_segment_take_section(void);

/* Gives a section back once nothing writes to it any more. Its state and counts stay for readers.
 */
void bfc_segment_return_section(struct bfc_segment_pool *section);

/* Counts what did not go through a pool. Relaxed: each word stands for itself. */
void bfc_segment_count_forwarded_allocation(enum bfc_forward_reason reason);
void bfc_segment_count_forwarded_free(enum bfc_forward_reason reason);
void bfc_segment_count_bypassed(enum bfc_bypass_kind kind, uint64_t bytes);

#endif
