/*
 * Tables of driver functions without names (cuGetExportTable) whose functions may submit work.
 * The program is given a copy whose entries count as a submission to streams that are not known
 * for as long as the driver's function runs. Thread-safe.
 */
#ifndef BFC_INTERPOSE_UNKNOWN_TABLES_H
#define BFC_INTERPOSE_UNKNOWN_TABLES_H

#include <stdbool.h>

/*
 * Puts a copy into *table, the same one for the same table. False, with *table as it was: the table
 * is not a size in bytes followed by that many bytes of functions of the driver, or there is no
 * room for it, or this machine's calls cannot be followed to their end.
 */
bool bfc_unknown_table_copy(const void **table);

#endif
