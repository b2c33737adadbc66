/*
 * Removes what processes that are gone have left in the shared folder: their segments, and their
 * tables of exported blocks and sockets (interpose/features/share/). Removes only plain files and
 * sockets of this user whose name is that of a segment, table or socket of this library, and only
 * if their process is certainly gone. The number of directory entries that are read is bounded.
 * Thread-safe.
 */
#ifndef BFC_SEGMENT_LEFT_OVER_H
#define BFC_SEGMENT_LEFT_OVER_H

#include <stdint.h>

/*
 * The name of a process's table of exported blocks: user id, pid namespace, pid, random number. A
 * socket has the name of a table, a dot and another number: on it some process waits for the answer
 * of the table's process. The prefix differs from that of segments, so that readers of segments
 * ignore these files.
 */
#define BFC_TABLE_NAME_FORMAT "bfcipc.%u.%llu.%d.%016llx"

/* A table has a struct bfc_table_maker at this offset, which identifies the process that made the
 * table; zeros: the process is unknown. */
#define BFC_TABLE_MAKER_OFFSET 8
struct bfc_table_maker {
    uint64_t start_time; /* when the process began, in clock ticks after boot; 0: unknown */
    /* inode number of the process's time namespace; 0: unknown */
    uint64_t time_namespace;
};

/* How many seconds old a socket must be before it counts as left over because no process has it:
 * one that is just being made has a file before it has an address. */
enum { BFC_SOCKET_SETTLED_S = 10 };

/* Returns what identifies the calling process as the maker of a table. */
struct bfc_table_maker bfc_table_maker_self(void);

/* Removes tables and sockets in an open folder whose process is gone. It must be called before
 * segments there are removed, because a segment may show that a table's process is gone. */
void bfc_left_over_tables_sweep(int directory);

/* Removes left-over tables, sockets and segments in BFC_SHARED_FOLDER. */
void bfc_left_over_sweep(void);

/* Removes left-over tables and sockets in BFC_SHARED_FOLDER, also those with this process's pid,
 * which were made before an exec. Call it before this process makes a table. */
void bfc_left_over_own_sweep(void);

#endif
