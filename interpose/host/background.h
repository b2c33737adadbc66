/*
 * Whether the library's own threads may work. Once the process exits, these must not call the
 * driver any more, because the driver may already be shutting down.
 *
 * Such a thread calls bfc_background_enter first, and encloses each piece of work that may call the
 * driver in bfc_background_begin and _end. At the process's exit a handler forbids further work,
 * and waits a second at most for work under way.
 */
#ifndef BFC_INTERPOSE_BACKGROUND_H
#define BFC_INTERPOSE_BACKGROUND_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Starts a thread of the library's own, with all signals blocked, since the program's handlers must
 * not run there. At the process's exit its work is stopped before the driver's own handlers run.
 * False: the host has no memory, or allows no thread.
 */
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
