/*
 * Keeps threads from being cancelled inside our calls. A cancelled thread (pthread_cancel) ends at
 * its next cancellation point. The driver's calls are no cancellation points, so our file accesses,
 * sleeps and messages must not be either: the thread would end inside a cudaMalloc, possibly while
 * it holds a lock of ours.
 */
#ifndef BFC_BASE_CANCEL_H
#define BFC_BASE_CANCEL_H

#include <pthread.h>

/* Disables cancellation, and returns the value for bfc_cancel_restore. Calls may nest. */
static inline int bfc_cancel_disable(void) {
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    return state;
}

static inline void bfc_cancel_restore(int state) {
    pthread_setcancelstate(state, NULL);
}

#endif
