/*
 * Records which call stacks hold a job's memory: asks the job, and writes its answers to the file
 * of bfcstat record.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_RECORD_WHO_H
#define BFC_TOOLS_RECORD_WHO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "segment/name.h"
#include "tools/job/job_who.h"

struct recorded_who {
    int directory;
    const struct bfc_segment_name *name;
    /* when the job's shared-memory segment was created, in ns by CLOCK_REALTIME; times are written
     * relative to it */
    uint64_t created_ns;
    bool space; /* whether a list of all blocks of the pools is written too; it may be long */
    /* Whether the call stack of each sampled allocation is written too, because --events was
     * given. */
    bool events;
    /* number of the first allocation or free (event) whose call stack is not written yet */
    uint64_t next_event;
    uint64_t sites; /* how many call stacks (sites) are written to the file already */
};

/* Asks the job which call stacks hold its memory, and for a list of its pools' blocks. False:
 * `reason`, cut off at `size` bytes, says why. */
bool ask_recorded_who(const struct recorded_who *recorded, struct bfc_who *who, char *reason,
                      size_t size);

/* Writes the job's answer `who`, and the call stacks that are not written yet. If the job has
 * recorded no call stacks, writes why. If the job did not answer, `who` is NULL, and `reason` is
 * written. */
void put_recorded_who(struct recorded_who *recorded, const struct bfc_who *who, const char *reason,
                      FILE *file);

#endif
