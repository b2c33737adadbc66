/*
 * The thread that gives importers the descriptors of this process's exported pages.
 *
 * It sleeps at the wakeup of the process's table without an open descriptor, and calls importers
 * that wait at sockets beside the table. A hung importer costs the others some seconds, and the
 * program nothing.
 */
#ifndef BFC_INTERPOSE_PAGE_SERVER_H
#define BFC_INTERPOSE_PAGE_SERVER_H

#include <stdbool.h>

/* Starts it, once a process: after the first row was published, before its token is given out.
 * False: the host has no memory, or allows no thread. Thread-safe. */
bool bfc_page_server_start(void);

#endif
