/* The helper thread, which serves readers of the segment and waiting jobs, and what is measured for
 * them and for the summary at the process's exit. */
#ifndef BFC_INTERPOSE_WATCHING_H
#define BFC_INTERPOSE_WATCHING_H

#include "interpose/config/process.h"
#include "interpose/table/feature.h"

/*
 * The helper thread answers the requests that readers write into the segment, and gives regions
 * back that were idle for long (BFC_TRIM_IDLE). It calls no function of the driver once the process
 * exits. bfc_helper_start is to be called once, for the segment that the process publishes.
 */
void bfc_helper_start(const struct bfc_process *process, struct bfc_segment_header *published);

/* Called after each free, as `freed` of struct bfc_feature: makes the helper thread wake the jobs
 * that wait for memory. */
void bfc_helper_wake_waiters(struct bfc_arena *arena, CUdeviceptr pointer, CUresult result,
                             bool may_wait);

/*
 * Updates the segment's map, which shows which parts of each region are in use, and largest_free
 * and the fragmentation of each pool. Takes the pool's lock anew for each block, so that the
 * program is not delayed; the map may therefore mix states of several moments. Only the helper
 * thread may call this.
 */
void bfc_occupancy_refresh(void);

/*
 * Updates the field `fit` in the segment's section of each existing pool; does nothing without a
 * segment. Fragmentation is how much of a pool's ready memory is in blocks too small for the
 * largest request that the program made lately. Recent requests are read from the segment's ring of
 * events, so that an allocation spends no time on the measurement. Thread-safe.
 */
void bfc_fragmentation_measure(void);

/* Writes the summary of what the pools did to standard error, at the process's exit, unless
 * BFC_SUMMARY=0 or BFC_LOG=off. Not thread-safe. */
void bfc_summary_at_exit(const struct bfc_process *process);

#endif
