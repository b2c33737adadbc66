/*
 * Writes those lines of a recording that say which call stacks (sites) hold the job's memory.
 * docs/bfcstat.md describes them.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_WHO_LINES_H
#define BFC_TOOLS_WHO_LINES_H

#include <stdio.h>

#include "tools/bfcstat/who/frame_names.h"

/* Writes the sites (call stacks) with index `first` and above, with the frames of each; nothing if
 * there are none. */
void who_put_sites(struct who_names *names, uint64_t first, FILE *stream);

/* Writes how much memory each site (call stack) holds, and in which blocks. `us` is when the job
 * answered, in microseconds since the job's shared-memory segment was created. */
void who_put_moment(const struct bfc_who *who, uint64_t us, FILE *stream);

/* Writes all regions of the pools, and all their blocks except those that are free and ready. */
void who_put_space(const struct bfc_who *who, uint64_t us, FILE *stream);

/* Writes the call stack (site) of each allocation whose event has number `first` or higher and
 * whose call stack was recorded; nothing if there are none. Returns the number that follows the
 * highest number written; `first` if nothing was written. */
uint64_t who_put_taken(const struct bfc_who *who, uint64_t first, FILE *stream);

/* Writes a line that says why it is not known which call stacks held the memory at the time `us`
 * (in microseconds since the job's shared-memory segment was created). */
void who_put_reason(const char *reason, uint64_t us, FILE *stream);

#endif
