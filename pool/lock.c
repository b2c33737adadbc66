/* The slow half of the pool's lock: back off, then sleep. */
#include "pool/lock.h"

#include <time.h>

#define MOST_PAUSES 1024
#define NAP_NS 20000

static void pause_for(unsigned pauses) {
    while (pauses--) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("isb" ::: "memory");
#endif
    }
}

static void nap(void) {
    nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

void pool_lock_slowly(struct pool_lock *lock) {
    unsigned pauses = 4;
    do {
        if (pauses <= MOST_PAUSES)
            pause_for(pauses), pauses *= 2;
        else
            nap();
        /* Relaxed: only a hint; the exchange that follows acquires. */
    } while (__atomic_load_n(&lock->taken, __ATOMIC_RELAXED) ||
             __atomic_exchange_n(&lock->taken, 1, __ATOMIC_ACQUIRE));
}
