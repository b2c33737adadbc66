/*
 * What processes that are gone have left in the shared folder: their segments, and their tables of
 * exported blocks and sockets (interpose/features/share/). Nothing but plain files and sockets of
 * this user that bear such a name is removed, and nothing of which it is not certain that its
 * process is gone. The number of directory entries that are looked at is bounded. Thread-safe.
 */
#ifndef BFC_SEGMENT_LEFT_OVER_H
#define BFC_SEGMENT_LEFT_OVER_H

#include <stdint.h>

/* User id, pid namespace, pid, random number of a table; that of a caller's socket has a dot and
 * one number more. Not a segment's prefix, which readers look for. */
#define BFC_TABLE_NAME_FORMAT "bfcipc.%u.%llu.%d.%016llx"

/* At this offset of a table: who made it. Zeros: not told. */
#define BFC_TABLE_MAKER_OFFSET 8
struct bfc_table_maker {
    uint64_t start_time;     /* as bfc_process_start_time */
    uint64_t time_namespace; /* as bfc_time_namespace */
};

struct bfc_table_maker bfc_table_maker_self(void);

/* Tables and sockets in an open folder; before its segments, which may tell that a table's process
 * is gone. */
void bfc_left_over_tables_sweep(int directory);

/* The same in BFC_SHARED_FOLDER; and segments, or what this process had made there before an exec:
 * it has made no table since. */
void bfc_left_over_sweep(void);
void bfc_left_over_own_sweep(void);

#endif
