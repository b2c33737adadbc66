/*
 * The pool's lock: one word. Locking and unlocking together take one atomic read-modify-write.
 *
 * The lock is held for some tens of nanoseconds. So a thread that finds it taken pauses, longer
 * each time, and after some ten microseconds sleeps. It sleeps for a time that it chooses itself,
 * and nobody wakes it. So unlocking need not check for sleeping threads, and a thread that
 * allocates in a tight loop keeps the lock and the pool's records in its cache for several calls.
 * The lock is not fair. If a thread dies while it holds the lock, the lock stays taken.
 */
#ifndef BFC_POOL_LOCK_H
#define BFC_POOL_LOCK_H

#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

struct pool_lock {
    uint32_t taken;
};

void pool_lock_slowly(struct pool_lock *lock);

static inline void pool_lock(struct pool_lock *lock) {
    if (UNLIKELY(bfc_exchange_acquire(&lock->taken, 1)))
        pool_lock_slowly(lock);
}

static inline void pool_unlock(struct pool_lock *lock) {
    bfc_store_release(&lock->taken, 0);
}

#endif
