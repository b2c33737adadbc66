/*
 * The pool's lock: one word, one atomic read-modify-write a round trip.
 *
 * It is held for list surgery only, some tens of nanoseconds, so a thread that finds it taken backs
 * off, longer each time, and soon sleeps for a moment instead of being woken. Unlocking need not
 * check for sleepers, and a thread that allocates in a tight loop keeps the lock and the records in
 * its cache for a while instead of passing both to and fro (docs/notes/pool-experiments.md). It is
 * not fair. A thread's crash while holding it is not detected.
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
