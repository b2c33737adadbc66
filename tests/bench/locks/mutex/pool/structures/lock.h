/* For comparison: the C library's mutex. */
#ifndef BFC_POOL_LOCK_H
#define BFC_POOL_LOCK_H

#include <pthread.h>

struct pool_lock {
    pthread_mutex_t mutex; /* all zero is what PTHREAD_MUTEX_INITIALIZER is */
};

static inline void pool_lock(struct pool_lock *lock) {
    pthread_mutex_lock(&lock->mutex);
}

static inline void pool_unlock(struct pool_lock *lock) {
    pthread_mutex_unlock(&lock->mutex);
}

#endif
