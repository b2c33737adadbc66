/* Reads files whole, and writes files whole or not at all: into a temporary file in the same
 * folder, which is then renamed. */
#ifndef BFC_PLAN_FILE_H
#define BFC_PLAN_FILE_H

#include <stdio.h>

#include "planner/common/error.h"
#include "planner/common/text.h"

/* Reads a regular file, a pipe, or with "-" standard input. Free with file_free. */
bool file_read(struct file_text *text, const char *path, struct plan_error *error);

struct file_writer {
    FILE *stream;
    /* a text of the caller's, which must be valid for as long as the writer is open */
    const char *path;
    char *temporary; /* name of the temporary file; NULL: the path is no regular file, so it is
                        written directly */
};

/* Between open and close the caller writes to `stream`, and need not check for errors: file_close
 * reports them. */
bool file_open(struct file_writer *writer, const char *path, struct plan_error *error);
bool file_close(struct file_writer *writer, struct plan_error *error);
/* Refuses a path that file_open would refuse, and changes no file. Call it before long work. */
bool file_check_output(const char *path, struct plan_error *error);
/* Removes the temporary file of the open writer, of which there is at most one, and lets nobody
 * make another one: whoever tries waits. For signal handlers that end the program then. */
void file_drop_unfinished(void);
/* From now on a signal that asks the program to end (SIGHUP, SIGINT, SIGTERM) does that first. */
void file_drop_at_signals(void);
/* Discards what was written: the file at the path stays as it was. */
void file_abandon(struct file_writer *writer);

#endif
