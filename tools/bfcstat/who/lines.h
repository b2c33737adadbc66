/*
 * Call stacks in a recording, and who holds the memory: lines for the report (docs/bfcstat.md). One
 * thread.
 */
#ifndef BFC_TOOLS_WHO_LINES_H
#define BFC_TOOLS_WHO_LINES_H

#include <stdio.h>

#include "tools/bfcstat/who/frame_names.h"

/* Sites from the first one on that is not known yet, with their stacks; nothing if there is none.
 */
void who_put_sites(struct who_names *names, uint64_t first, FILE *stream);

/* What they hold at the moment, `us` by the clock of the job's events, and by which blocks. */
void who_put_moment(const struct bfc_who *who, uint64_t us, FILE *stream);

/* The pools' regions, and what is in them but for ready blocks. */
void who_put_space(const struct bfc_who *who, uint64_t us, FILE *stream);

/* The sites of the sampled allocations whose events have numbers from `first` on; nothing if there
 * are none. Returns the number after the last one. */
uint64_t who_put_taken(const struct bfc_who *who, uint64_t first, FILE *stream);

/* That it cannot be told, and why. */
void who_put_reason(const char *reason, uint64_t us, FILE *stream);

#endif
