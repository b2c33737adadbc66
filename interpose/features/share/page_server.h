/* The thread that sends importers the descriptors of this process's exported pages. It sleeps on
 * the wakeup of the process's table without an open descriptor, and connects to importers that
 * listen on sockets in the same folder. An importer that hangs delays the others by some seconds,
 * and the program not at all. */
#ifndef BFC_INTERPOSE_PAGE_SERVER_H
#define BFC_INTERPOSE_PAGE_SERVER_H

#include <stdbool.h>

/* Starts the thread, unless this process has started it already. An exporter calls this after it
 * has published a row of the table, and before it gives the row's token to the program. False: the
 * host has no memory, or allows no thread. Thread-safe. */
bool bfc_page_server_start(void);

#endif
