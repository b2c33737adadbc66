/*
 * Records which call stacks hold a job's memory: asks the job, and writes its answers as lines of
 * the recording.
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
    uint64_t created_ns; /* when the job's clock began */
    bool space;          /* whether the pools' blocks are written too, of which there may be many */
    /* whether the sites of sampled events are written too, because --events was given */
    bool events;
    uint64_t next_event; /* number of the first event whose site is not written yet */
    uint64_t sites;      /* how many sites are written */
};

/* Asks the job which stacks hold its memory, and for the blocks of its pools. False: `reason`, cut
 * off at `size` bytes, says why. */
bool ask_recorded_who(const struct recorded_who *recorded, struct bfc_who *who, char *reason,
                      size_t size);

/* Writes what the job answered, and the sites that are not written yet; if it has no samples, the
 * reason for that. If the job did not answer, `who` is NULL and `reason` says why. */
void put_recorded_who(struct recorded_who *recorded, const struct bfc_who *who, const char *reason,
                      FILE *file);

#endif
