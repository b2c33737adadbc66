/*
 * Writes a job's blocks and last allocations and frees in the formats of other programs: PyTorch's
 * memory snapshots and Chrome's trace events.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_BFCSTAT_WRITE_SNAPSHOT_H
#define BFC_TOOLS_BFCSTAT_WRITE_SNAPSHOT_H

#include <stdio.h>

#include "tools/bfcstat/snapshot/last_calls.h"
#include "tools/bfcstat/who/frame_names.h"

struct moment {
    const struct bfc_job *job;
    /* the job's answer that lists its blocks and the call stacks that hold them */
    const struct bfc_who *who;
    /* the last allocations and frees; calls_finish must have completed the list */
    const struct calls *calls;
    struct who_names names;
};

/* Writes a memory snapshot in PyTorch's format, with times in microseconds since 1970. False: out
 * of memory. */
bool write_pickle(struct moment *moment, FILE *file);

/* Writes trace events in Chrome's format, which Perfetto reads: for each device the requested bytes
 * in use and the bytes of all regions as counters, and failed allocations. Times are in
 * microseconds since the job's shared-memory segment was created. */
void write_chrome_trace(const struct moment *moment, FILE *file);

#endif
