/* For comparison: the C library's mutex that spins before it sleeps. */
#ifndef BFC_POOL_LOCK_H
#define BFC_POOL_LOCK_H

#include <pthread.h>
#include <stdbool.h>

struct pool_lock {
    pthread_mutex_t mutex;
    bool is_made; /* by the first call, before there are threads */
};

static inline void pool_lock(struct pool_lock *lock) {
    if (__builtin_expect(!lock->is_made, 0)) {
        lock->mutex = (pthread_mutex_t)PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
        lock->is_made = true;
    }
    pthread_mutex_lock(&lock->mutex);
}

static inline void pool_unlock(struct pool_lock *lock) {
    pthread_mutex_unlock(&lock->mutex);
}

#endif
