/*
 * The helper thread answers the requests that readers write into the segment, and gives regions
 * back that were idle for long (BFC_TRIM_IDLE). It calls no function of the driver once the process
 * exits.
 */
#ifndef BFC_INTERPOSE_HELPER_H
#define BFC_INTERPOSE_HELPER_H

#include "interpose/config/process.h"
#include "layout/segment.h"

/* Makes the helper thread wake the jobs that wait for freed memory. Thread-safe. */
void bfc_helper_wake_waiters(void);

/* Starts the thread for the segment that the process publishes. To be called once. */
void bfc_helper_start(const struct bfc_process *process, struct bfc_segment_header *published);

#endif
