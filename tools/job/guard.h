/*
 * Visits a mapped segment under a guard: if the segment is truncated meanwhile, the SIGBUS that an
 * access to it raises is caught.
 *
 * Thread-safety: one thread at a time, because a visit sets the process's action on SIGBUS until it
 * ends. Only bfcpreload's own programs may use this: the preloaded library must not change the
 * signal actions of a program.
 */
#ifndef BFC_TOOLS_JOB_GUARD_H
#define BFC_TOOLS_JOB_GUARD_H

#include "segment/segment_file.h"

/* `base` is the mapped segment, BFC_SEGMENT_SIZE bytes. */
typedef enum bfc_read_result bfc_segment_visit(const struct bfc_segment_look *look, char *base,
                                               void *context);

/* Opens, checks and maps the segment, and calls `visit` on it. If a fault occurs in the segment
 * during the visit, the segment is refused. Fills the reason on any result but BFC_READ_OK. */
enum bfc_read_result bfc_segment_visit_guarded(const struct bfc_segment_look *look, int directory,
                                               bool writable, bfc_segment_visit *visit,
                                               void *context);

#endif
