/*
 * Writes a job's blocks and last calls in the formats of other programs.
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
    const struct bfc_who *who; /* an answer that lists the blocks */
    const struct calls *calls; /* the last calls; calls_finish has ended the list */
    struct who_names names;
};

/* Writes a memory snapshot in PyTorch's format, with times in microseconds since 1970. False: the
 * host has no memory. */
bool write_pickle(struct moment *moment, FILE *file);

/* Writes Chrome's trace events: live and reserved bytes of each device as counters, and failures.
 * Times are in microseconds since the job's first allocation. */
void write_chrome_trace(const struct moment *moment, FILE *file);

#endif
