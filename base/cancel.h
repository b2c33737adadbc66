/*
 * Keeps threads from being cancelled inside the library. A thread that was cancelled
 * (pthread_cancel) ends at its next cancellation point. The driver's calls are no cancellation
 * points, so the library's file accesses, sleeps and messages must not be either: the thread would
 * end inside a cudaMalloc, perhaps while it holds a lock of the library.
 */
#ifndef BFC_BASE_CANCEL_H
#define BFC_BASE_CANCEL_H

#include <pthread.h>

/* Disables cancellation in the calling thread, and returns the former state for bfc_cancel_restore.
 * Pairs of these calls may be nested. */
static inline int bfc_cancel_disable(void) {
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    return state;
}

static inline void bfc_cancel_restore(int state) {
    pthread_setcancelstate(state, NULL);
}

#endif
