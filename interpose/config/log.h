/*
 * Messages of the library: one line each on standard error, as BFC_LOG chooses
 * (docs/internals/log.md lists them).
 *
 * Nothing is written before bfc_log_begin, in a forked child, or once the program has opened
 * another file as descriptor 2 (interpose/host/quiet.h). Thread-safe; not for hot paths.
 */
#ifndef BFC_INTERPOSE_LOG_H
#define BFC_INTERPOSE_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "interpose/config/options.h"

/* From now on, messages of levels up to `*level` are written. `level` must lie in memory that the
 * kernel sets to zero in a forked child: 0 means off, so the child writes none. */
void bfc_log_begin(const int *level);

/* Whether a message of this level would be written. If not, the caller need not prepare it. */
bool bfc_log_shows(enum bfc_log_level level);

/* Writes a message of one line. `format` has no newline. */
void bfc_log(int level, const char *format, ...) PRINTF_LIKE(2, 3);

/* Writes a message that may come often. `*seen` counts those that BFC_LOG lets through. The first 8
 * are written, then the 16th, 32nd, 64th and so on; these end with their number. */
void bfc_log_repeated(int level, unsigned *seen, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
