/*
 * Writes lines of a recording: call stacks, and the memory that they hold, for the report
 * (docs/bfcstat.md).
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_WHO_LINES_H
#define BFC_TOOLS_WHO_LINES_H

#include <stdio.h>

#include "tools/bfcstat/who/frame_names.h"

/* Writes the sites from `first` on, with their stacks; nothing if there is none. */
void who_put_sites(struct who_names *names, uint64_t first, FILE *stream);

/* Writes what the sites hold at the time `us`, by the clock of the job's events, and in which
 * blocks. */
void who_put_moment(const struct bfc_who *who, uint64_t us, FILE *stream);

/* Writes the pools' regions, and their blocks except ready ones. */
void who_put_space(const struct bfc_who *who, uint64_t us, FILE *stream);

/* Writes the sites of the sampled allocations whose events have numbers from `first` on; nothing if
 * there are none. Returns the number after the last one, or `first`. */
uint64_t who_put_taken(const struct bfc_who *who, uint64_t first, FILE *stream);

/* Writes a line that says why it is not known who holds the memory at the time `us`. */
void who_put_reason(const char *reason, uint64_t us, FILE *stream);

#endif
