/* Waits for a few processor cycles, `pauses` times, between two attempts to take a lock. */
#ifndef BFC_POOL_PAUSE_H
#define BFC_POOL_PAUSE_H

static inline void pause_for(unsigned pauses) {
    while (pauses--) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("isb" ::: "memory");
#endif
    }
}

#endif
