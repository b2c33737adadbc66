/*
 * Messages: one line each on standard error, as BFC_LOG chooses (docs/internals/log.md lists them).
 *
 * Nothing is written before the process's state is made, in a forked child, or where descriptor 2
 * is no longer standard error (interpose/host/quiet.h). Thread-safe; not for hot paths.
 */
#ifndef BFC_INTERPOSE_LOG_H
#define BFC_INTERPOSE_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "interpose/config/options.h"

/*
 * From now on, messages up to `*level` are written. `level` lies in memory that is wiped in a
 * forked child, so that the child writes none.
 */
void bfc_log_begin(const int *level);

/*
 * Whether a message of this level would be written; if not, the caller can skip the work of
 * preparing it.
 */
bool bfc_log_shows(enum bfc_log_level level);

/* Writes a message of one line. `format` has no newline. */
void bfc_log(int level, const char *format, ...) PRINTF_LIKE(2, 3);

/*
 * Writes a message that a loop may repeat, but not each time. `*seen` counts the times: the first 8
 * are written, then the 16th, 32nd, 64th and so on, each with its number.
 */
void bfc_log_repeated(int level, unsigned *seen, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
