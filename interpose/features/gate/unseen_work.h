/* Work that may be submitted by functions without a hook, and kernels that need not wait for
 * earlier work of their stream. Thread-safe. */
#ifndef BFC_INTERPOSE_UNSEEN_WORK_H
#define BFC_INTERPOSE_UNSEEN_WORK_H

#include <cuda.h>
#include <stdbool.h>

/* Notes that cuGetExportTable is about to give the program the table of functions with this id. If
 * the functions may submit work, a copy is put into *table (unknown_tables.h); if it cannot be
 * copied, work counts as unseen from then on. */
void bfc_unseen_note_table(const void **table, const CUuuid *id);

/* Whether the launched kernel may run before earlier work of its stream has ended. */
bool bfc_unseen_may_overlap(const CUlaunchConfig *how);

#endif
