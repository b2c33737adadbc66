/*
 * The library's own threads. Once the process exits, they must not call the driver any more,
 * because the driver may be shutting down.
 *
 * A thread that may call the driver calls bfc_background_enter first, and encloses each piece of
 * work that may call the driver in bfc_background_begin and bfc_background_end. At exit a handler
 * forbids further work, and waits for work under way, a second at most.
 */
#ifndef BFC_INTERPOSE_BACKGROUND_H
#define BFC_INTERPOSE_BACKGROUND_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Runs `run(argument)` in a new detached thread, which blocks all signals, since the program's
 * handlers must not run in it. `stack_bytes` is the size of its stack; 0, or a size that the C
 * library refuses, means the default. False: the host has no memory, or allows no more threads.
 * Thread-safe.
 */
bool bfc_thread_start(void *(*run)(void *argument), void *argument, size_t stack_bytes);

/* Like bfc_thread_start, but with a small stack, and for background work: at the process's exit the
 * thread is stopped before the driver's own exit handlers run. */
bool bfc_background_start(void *(*run)(void *), void *argument);

/* Marks the calling thread as a background thread. */
void bfc_background_enter(void);

/* A background thread calls these functions before and after work that may call the driver. False:
 * the process exits, so the work must not be done, and bfc_background_end must not be called. */
bool bfc_background_begin(void);
void bfc_background_end(void);

bool bfc_background_is_current(void);

/* Whether the process has begun to exit. */
bool bfc_background_is_over(void);

/* Whether the calling thread is a background thread and the process has begun to exit, so that the
 * thread must not call the driver. Thread-safe. */
bool bfc_background_is_stopped(void);

#endif
