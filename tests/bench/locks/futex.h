/*
 * For comparison: the three-state lock (U. Drepper, "Futexes are tricky", 2011): free, taken, taken
 * with sleepers. FUTEX_SPINS tries, ever further apart, go before the sleep.
 */
#ifndef TESTS_BENCH_LOCKS_FUTEX_H
#define TESTS_BENCH_LOCKS_FUTEX_H

#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pool/structures/pause.h"

#ifndef FUTEX_SPINS
#define FUTEX_SPINS 0
#endif

struct pool_lock {
    uint32_t state;
};

static inline bool try_lock(struct pool_lock *lock) {
    return __atomic_compare_exchange_n(&lock->state, &(uint32_t){0}, 1, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

static __attribute__((noinline)) void lock_slowly(struct pool_lock *lock) {
    for (unsigned spin = 0; spin != FUTEX_SPINS; spin++) {
        pause_for(4u << spin);
        /* Relaxed: only a hint; the exchange that follows acquires. */
        if (!__atomic_load_n(&lock->state, __ATOMIC_RELAXED) && try_lock(lock))
            return;
    }
    while (__atomic_exchange_n(&lock->state, 2, __ATOMIC_ACQUIRE))
        syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

static inline void pool_lock(struct pool_lock *lock) {
    if (__builtin_expect(!try_lock(lock), 0))
        lock_slowly(lock);
}

static inline void pool_unlock(struct pool_lock *lock) {
    if (__builtin_expect(__atomic_exchange_n(&lock->state, 0, __ATOMIC_RELEASE) == 2, 0))
        syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

#endif
