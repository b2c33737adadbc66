/*
 * No cancellation inside our calls. A thread that was told to end (pthread_cancel) does so at its
 * next cancellation point, and the driver's calls are none: our files, naps and messages must not
 * be either, least of all under a lock of ours, which would stay taken. (Natively cudaMalloc would
 * have returned.)
 */
#ifndef BFC_BASE_CANCEL_H
#define BFC_BASE_CANCEL_H

#include <pthread.h>

/* What bfc_cancel_restore takes; the two nest. */
static inline int bfc_cancel_disable(void) {
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    return state;
}

static inline void bfc_cancel_restore(int state) {
    pthread_setcancelstate(state, NULL);
}

#endif
