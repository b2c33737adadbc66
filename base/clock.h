/* The system's clocks, and times in nanoseconds. */
#ifndef BFC_BASE_CLOCK_H
#define BFC_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define BFC_NS_PER_SECOND UINT64_C(1000000000)

/* A clock that cannot be read stands still. */
static inline uint64_t bfc_read_clock(clockid_t clock) {
    struct timespec time = {0};
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * BFC_NS_PER_SECOND + (uint64_t)time.tv_nsec;
}

/* The monotonic clock, for durations. */
static inline uint64_t bfc_now_ns(void) {
    return bfc_read_clock(CLOCK_MONOTONIC);
}

/* The kernel's own monotonic clock, whatever stands before the C library's (libfaketime): for times
 * that processes compare, and for waits that a program's clock must not end. */
uint64_t bfc_kernel_now_ns(void);

static inline double bfc_now_seconds(void) {
    return (double)bfc_now_ns() / (double)BFC_NS_PER_SECOND;
}

/* The time of day, for other processes and people. */
static inline uint64_t bfc_wall_clock_ns(void) {
    return bfc_read_clock(CLOCK_REALTIME);
}

static inline struct timespec bfc_timespec(uint64_t ns) {
    return (struct timespec){.tv_sec = (time_t)(ns / BFC_NS_PER_SECOND),
                             .tv_nsec = (long)(ns % BFC_NS_PER_SECOND)};
}

/*
 * Sleeps at least this long, even if a signal handler runs meanwhile or a clock is wrong; not a
 * cancellation point.
 */
void bfc_nap(long ns);

/*
 * Between two tries of what another thread is about to let happen: yields, and after some tries
 * sleeps, since a thread with a real-time priority yields to no lower one.
 */
void bfc_back_off(unsigned *tries);

/*
 * Waits until `is_over(argument)` returns true, and calls it once at least. True: it did. False:
 * `limit_ns` nanoseconds of the kernel's clock passed first. Between two calls the thread sleeps an
 * eighth of the time that it has waited so far, but no less than 20 and no more than 200 µs. For
 * callers that hold no lock which the awaited thread may want, and never under the pool's lock.
 */
bool bfc_await(bool (*is_over)(void *argument), void *argument, uint64_t limit_ns);

/* The same until an atomic counter is 0. */
bool bfc_await_zero(const unsigned *count, uint64_t limit_ns);

/*
 * A bounded wait, for loops that do more than ask. It ends by the clock or by the number of naps,
 * since a program's clock may stand still (libfaketime). Each nap takes at least `nap_ns`, so by
 * count it never ends earlier.
 */
struct bfc_bounded_wait {
    uint64_t until_ns, naps;
    long nap_ns;
};
struct bfc_bounded_wait bfc_bounded_wait_until(uint64_t until_ns, uint64_t now_ns, long nap_ns);
bool bfc_bounded_wait_nap(struct bfc_bounded_wait *wait); /* false, at once: the time is over */

#endif
