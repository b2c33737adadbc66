/*
 * Visits a mapped segment under a guard: if the segment is truncated meanwhile, the fault that this
 * raises is caught.
 *
 * Thread-safety: sets the process's action on SIGBUS for the time of the visit, so one thread at a
 * time may do it. Only for our own programs: the library sets no signal's action.
 */
#ifndef BFC_TOOLS_JOB_GUARD_H
#define BFC_TOOLS_JOB_GUARD_H

#include "segment/segment_file.h"

/* `base` is the mapped segment, BFC_SEGMENT_SIZE bytes. */
typedef enum bfc_read_result bfc_segment_visit(const struct bfc_segment_look *look, char *base,
                                               void *context);

/*
 * Opens, checks and maps the segment, and calls `visit` on it; a fault while it runs makes the
 * segment refused. Fills the reason on any result but BFC_READ_OK.
 */
enum bfc_read_result bfc_segment_visit_guarded(const struct bfc_segment_look *look, int directory,
                                               bool writable, bfc_segment_visit *visit,
                                               void *context);

#endif
