/*
 * Tables of driver functions without names (cuGetExportTable) whose functions may submit work. The
 * program is given a copy of the table. A call through the copy counts as a submission to unknown
 * streams for as long as the driver's function runs. Thread-safe.
 */
#ifndef BFC_INTERPOSE_UNKNOWN_TABLES_H
#define BFC_INTERPOSE_UNKNOWN_TABLES_H

#include <stdbool.h>

/*
 * Puts a copy of the table into *table, the same copy each time. False, with *table as it was: the
 * table is not a size in bytes followed by functions up to that size, or there is no room for a
 * copy, or the processor has a shadow stack, so that return addresses cannot be changed.
 */
bool bfc_unknown_table_copy(const void **table);

#endif
