/*
 * The helper thread: answers the requests that readers write into the segment, and gives back what
 * was idle for long (BFC_TRIM_IDLE). It keeps away from the driver from the process's exit on.
 */
#ifndef BFC_INTERPOSE_HELPER_H
#define BFC_INTERPOSE_HELPER_H

#include "interpose/config/process.h"
#include "layout/segment.h"

/* After a free that somebody waits for: has the helper tell those who wait. */
void bfc_helper_tell_waiters(void);

/* Once a process, for the segment that it publishes. */
void bfc_helper_start(const struct bfc_process *process, struct bfc_segment_header *published);

#endif
