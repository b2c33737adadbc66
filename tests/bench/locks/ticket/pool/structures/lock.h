/* For comparison: tickets, first come first served; waiters yield. */
#ifndef BFC_POOL_LOCK_H
#define BFC_POOL_LOCK_H

#include <sched.h>
#include <stdint.h>

#include "pool/structures/pause.h"

struct pool_lock {
    uint32_t next, serving;
};

static inline void pool_lock(struct pool_lock *lock) {
    /* Relaxed: the load that follows acquires. */
    uint32_t mine = __atomic_fetch_add(&lock->next, 1, __ATOMIC_RELAXED);
    for (unsigned tries = 0; __atomic_load_n(&lock->serving, __ATOMIC_ACQUIRE) != mine; tries++)
        if (tries < 64)
            pause_for(1);
        else
            sched_yield();
}

static inline void pool_unlock(struct pool_lock *lock) {
    __atomic_store_n(&lock->serving, lock->serving + 1, __ATOMIC_RELEASE);
}

#endif
