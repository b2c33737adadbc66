/*
 * Calls at the end of a thread.
 *
 * By glibc's own registry (2.18): unlike a pthread key it needs no slot, and thread keys are in
 * libc.so.6 only since 2.34.
 */
#ifndef BFC_INTERPOSE_THREAD_EXIT_H
#define BFC_INTERPOSE_THREAD_EXIT_H

#include <stdbool.h>

/*
 * Has `function` called when the calling thread ends, unless `*registered` says that it will be.
 * `*registered` is the caller's own, one a thread and function; the function clears it if the
 * thread may register again. Later registrations run first. Without host memory nothing is
 * registered.
 */
void bfc_at_thread_exit(bool *registered, void (*function)(void *));

#endif
