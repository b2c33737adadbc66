/* Reads whole files, and writes files so that they appear whole or not at all: into a temporary
 * file in the same folder, which is renamed at the end. */
#ifndef BFC_PLAN_FILE_H
#define BFC_PLAN_FILE_H

#include <stdio.h>

#include "planner/common/error.h"
#include "planner/common/text.h"

/* Reads the whole of a regular file or a pipe; "-" is standard input. file_free frees the text. */
bool file_read(struct file_text *text, const char *path, struct plan_error *error);

struct file_writer {
    FILE *stream;
    /* The path to write to. It belongs to the caller, and must be valid until the writer is
     * closed. */
    const char *path;
    /* Name of the temporary file. NULL: the path is a device or pipe, which is written directly. */
    char *temporary;
};

/* file_open opens the file to write. The caller then writes to `stream` and need not check for
 * errors: file_close reports them, and puts the file in its place. */
bool file_open(struct file_writer *writer, const char *path, struct plan_error *error);
bool file_close(struct file_writer *writer, struct plan_error *error);
/* Fails if file_open would fail for this path, and changes no file. Called before long work, so
 * that the work is not lost. */
bool file_check_output(const char *path, struct plan_error *error);
/* Removes the temporary file of the open writer, of which there is at most one. For signal handlers
 * that end the program afterwards: the lock is kept, so that a thread which would make another
 * temporary file waits until the program ends. */
void file_drop_unfinished(void);
/* From now on the program removes the temporary file before it ends by SIGHUP, SIGINT or
 * SIGTERM. */
void file_drop_at_signals(void);
/* Closes the writer and discards what was written. The file at the path stays as it was. */
void file_abandon(struct file_writer *writer);

#endif
