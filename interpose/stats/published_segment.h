/*
 * The segment that this process publishes.
 *
 * The segment is made at the first allocation that a hook sees. If there is no shared memory for
 * it, the process runs without one. Thread-safe.
 */
#ifndef BFC_INTERPOSE_SEGMENT_H
#define BFC_INTERPOSE_SEGMENT_H

#include "interpose/config/process.h"
#include "layout/segment.h"

/* Makes the segment, once, and then calls `segment_opened` of each feature. To be called before the
 * first pool is made. */
void bfc_segment_open(const struct bfc_process *process);

/* Returns the mapped segment; NULL: none is published, or this is a forked child. */
struct bfc_segment_header *bfc_segment_published(void);

/* Returns the counters of the whole process: those in the segment, or if none is published, others
 * in memory that no reader sees. */
struct bfc_segment_header *bfc_segment_counters(void);

/* Returns the index of a section that bfc_segment_take_section has given. */
unsigned bfc_segment_section_index(const struct bfc_segment_pool *section);

/* Takes a section for a new pool: an unused one, or else one whose context has ended; the counts of
 * the latter are added to those of the process. NULL: there is no section to take. */
struct bfc_segment_pool *bfc_segment_take_section(void);

/* Gives a section back once nothing writes to it any more. Its state and counts stay for readers.
 */
void bfc_segment_return_section(struct bfc_segment_pool *section);

/* These functions count calls that did not go through a pool. They have no memory order, as each
 * counter stands on its own. */
void bfc_segment_count_forwarded_allocation(enum bfc_forward_reason reason);
void bfc_segment_count_forwarded_free(enum bfc_forward_reason reason);
void bfc_segment_count_bypassed(enum bfc_bypass_kind kind, uint64_t bytes);

#endif
