/*
 * Maps a segment (the shared-memory file of a job) and calls a function on it. The job's user may
 * truncate the file meanwhile; the SIGBUS that an access then raises is caught.
 *
 * Thread-safety: one thread at a time, because the process's action on SIGBUS is changed until the
 * function has returned. Only bfcpreload's own programs may use this: the preloaded library must
 * not change the signal actions of a program.
 */
#ifndef BFC_TOOLS_JOB_GUARD_H
#define BFC_TOOLS_JOB_GUARD_H

#include "segment/segment_file.h"

/* The type of a function that is called on a mapped shared-memory segment. `base` is where its
 * BFC_SEGMENT_SIZE bytes begin. */
typedef enum bfc_read_result bfc_segment_visit(const struct bfc_segment_look *look, char *base,
                                               void *context);

/* Opens, checks and maps the shared-memory segment, and calls `visit` on it. If the segment is
 * truncated meanwhile, it is refused. If the result is not BFC_READ_OK, look->reason says why. */
enum bfc_read_result bfc_segment_visit_guarded(const struct bfc_segment_look *look, int directory,
                                               bool writable, bfc_segment_visit *visit,
                                               void *context);

#endif
