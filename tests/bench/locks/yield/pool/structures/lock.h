/* For comparison: the pool's own lock, but its waiters yield where those nap. */
#ifndef BFC_POOL_LOCK_H
#define BFC_POOL_LOCK_H

#include <sched.h>
#include <stdint.h>

#include "pool/structures/pause.h"

struct pool_lock {
    uint32_t taken;
};

static __attribute__((noinline)) void lock_slowly(struct pool_lock *lock) {
    unsigned pauses = 4;
    do {
        if (pauses <= 1024)
            pause_for(pauses), pauses *= 2;
        else
            sched_yield();
        /* Relaxed: only a hint; the exchange that follows acquires. */
    } while (__atomic_load_n(&lock->taken, __ATOMIC_RELAXED) ||
             __atomic_exchange_n(&lock->taken, 1, __ATOMIC_ACQUIRE));
}

static inline void pool_lock(struct pool_lock *lock) {
    if (__builtin_expect(__atomic_exchange_n(&lock->taken, 1, __ATOMIC_ACQUIRE) != 0, 0))
        lock_slowly(lock);
}

static inline void pool_unlock(struct pool_lock *lock) {
    __atomic_store_n(&lock->taken, 0, __ATOMIC_RELEASE);
}

#endif
