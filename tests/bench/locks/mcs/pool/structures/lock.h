/*
 * For comparison: a queue of waiters, each at a word of its own (J. Mellor-Crummey, M. Scott,
 * "Algorithms for scalable synchronization on shared-memory multiprocessors", 1991); they yield.
 */
#ifndef BFC_POOL_LOCK_H
#define BFC_POOL_LOCK_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool/structures/pause.h"

struct waiter {
    struct waiter *next;
    uint32_t waits;
};

struct pool_lock {
    struct waiter *last;
    struct waiter *holder; /* written by who has the lock */
};

static inline void pool_lock(struct pool_lock *lock) {
    static _Thread_local struct waiter mine; /* one lock at a time */
    mine = (struct waiter){.waits = 1};
    struct waiter *before = __atomic_exchange_n(&lock->last, &mine, __ATOMIC_ACQ_REL);
    if (before)
        __atomic_store_n(&before->next, &mine, __ATOMIC_RELEASE);
    for (unsigned tries = 0; before && __atomic_load_n(&mine.waits, __ATOMIC_ACQUIRE); tries++)
        if (tries < 64)
            pause_for(1);
        else
            sched_yield();
    lock->holder = &mine;
}

static inline void pool_unlock(struct pool_lock *lock) {
    struct waiter *mine = lock->holder;
    struct waiter *next = __atomic_load_n(&mine->next, __ATOMIC_ACQUIRE);
    if (!next && __atomic_compare_exchange_n(&lock->last, &(struct waiter *){mine}, NULL, false,
                                             __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        return;
    while (!next)
        next = __atomic_load_n(&mine->next, __ATOMIC_ACQUIRE);
    __atomic_store_n(&next->waits, 0, __ATOMIC_RELEASE);
}

#endif
