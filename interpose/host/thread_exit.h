/*
 * Has functions called when a thread ends, by glibc's registry (since 2.18). No pthread key is
 * used: a process has few of them, and their functions are in libc.so.6 only since 2.34.
 */
#ifndef BFC_INTERPOSE_THREAD_EXIT_H
#define BFC_INTERPOSE_THREAD_EXIT_H

#include <stdbool.h>

/*
 * Has `function` called when the calling thread ends, unless `*registered` is set already.
 * `*registered` is a thread-local variable of the caller, one for each function; `function` clears
 * it if the thread may register again. Later registrations run first. If the host has no memory,
 * nothing is registered and `*registered` stays clear.
 */
void bfc_at_thread_exit(bool *registered, void (*function)(void *));

#endif
