/* The system's clocks, in nanoseconds. */
#ifndef BFC_INTERPOSE_CLOCK_H
#define BFC_INTERPOSE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t bfc_read_clock(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static inline uint64_t bfc_now_ns(void) {
    return bfc_read_clock(CLOCK_MONOTONIC);
}

#endif
