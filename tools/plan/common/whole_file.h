/*
 * Files read whole, and files written whole or not at all (a temporary file beside it, then a
 * rename).
 */
#ifndef BFC_PLAN_FILE_H
#define BFC_PLAN_FILE_H

#include <stdio.h>

#include "planner/common/error.h"
#include "planner/common/text.h"

/* Reads a regular file, a pipe, or with "-" standard input. Free with file_free. */
bool file_read(struct file_text *text, const char *path, struct plan_error *error);

struct file_writer {
    FILE *stream;
    const char *path; /* the caller's, must outlive the writer */
    char *temporary;  /* NULL when the path is not a regular file: written straight */
};

/* Between open and close write to `stream`; errors may be left to close, which finds them all. */
bool file_open(struct file_writer *writer, const char *path, struct plan_error *error);
bool file_close(struct file_writer *writer, struct plan_error *error);
/* Before long work: refuses what file_open would refuse in the end, and changes no file. */
bool file_check_output(const char *path, struct plan_error *error);
/*
 * In a signal's handler, before the program ends: removes the unfinished file of a writer that is
 * open. One writer is open at a time.
 */
void file_drop_unfinished(void);
/* Discards what was written: the file at the path stays as it was. */
void file_abandon(struct file_writer *writer);

#endif
