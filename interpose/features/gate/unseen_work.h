/* Work that no hook may see, or that does not wait for the work before it. Thread-safe. */
#ifndef BFC_INTERPOSE_UNSEEN_WORK_H
#define BFC_INTERPOSE_UNSEEN_WORK_H

#include <cuda.h>
#include <stdbool.h>

/* The driver gives the program the table of functions with this id. If these may submit work, a
 * copy of the table takes its place, or from now on work may be unseen. */
void bfc_unseen_note_table(const void **table, const CUuuid *id);

/* Whether the launch's work may overlap with earlier work of its stream. */
bool bfc_unseen_may_overlap(const CUlaunchConfig *how);

#endif
