/*
 * The helper thread: answers the requests that readers write into the segment, and gives back what
 * was idle for long (BFC_TRIM_IDLE). It keeps away from the driver from the process's exit on.
 */
#ifndef BFC_INTERPOSE_HELPER_H
#define BFC_INTERPOSE_HELPER_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/config/process.h"
#include "layout/segment.h"

/* Whether somebody waits for what this process frees. */
extern bool bfc_frees_are_awaited;

/* After a free, if so: hands over what completes what is waited for, and has the helper tell those
 * who wait. `may_wait`: the call may wait for work, as cuMemFree natively does; else nothing is
 * handed over. */
void bfc_helper_tell_waiters(bool may_wait);

static inline void bfc_helper_note_free(bool may_wait) {
    if (UNLIKELY(bfc_load_relaxed(&bfc_frees_are_awaited)))
        bfc_helper_tell_waiters(may_wait);
}

/* Once a process, for the segment that it publishes. */
void bfc_helper_start(const struct bfc_process *process, struct bfc_segment_header *published);

#endif
