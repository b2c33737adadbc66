/*
 * The library's own threads, and whether they may work. Once the process exits, these must not call
 * the driver any more, because the driver may already be shutting down.
 *
 * A thread that may call the driver calls bfc_background_enter first, and encloses each piece of
 * work that may call the driver in bfc_background_begin and _end. At the process's exit a handler
 * forbids further work, and waits a second at most for work under way.
 */
#ifndef BFC_INTERPOSE_BACKGROUND_H
#define BFC_INTERPOSE_BACKGROUND_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Runs `run(argument)` in a new thread, which is detached, blocks all signals, since the program's
 * handlers must not run there, and is not joined at exit. `stack_bytes` is its stack's size; 0, or
 * a size that the C library refuses, means the default. False: the host has no memory, or allows no
 * thread. Thread-safe.
 */
bool bfc_thread_start(void *(*run)(void *argument), void *argument, size_t stack_bytes);

/* Starts a thread as bfc_thread_start does, but with a small stack, for background work: at the
 * process's exit it is stopped before the driver's own handlers run. */
bool bfc_background_start(void *(*run)(void *), void *argument);

/* Declares the calling thread to be a background thread. */
void bfc_background_enter(void);

/* A background thread calls these before and after work that may call the driver. False: the
 * process exits, so the work must not be done, and bfc_background_end must not be called. */
bool bfc_background_begin(void);
void bfc_background_end(void);

/* Whether the calling thread is a background thread. */
bool bfc_background_is_current(void);

/* Whether the process is on its way out. */
bool bfc_background_is_over(void);

/* Whether the calling thread is a background thread, and was stopped. Thread-safe. */
bool bfc_background_is_stopped(void);

#endif
