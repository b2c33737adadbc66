/* The system's clocks, and times in nanoseconds. */
#ifndef BFC_BASE_CLOCK_H
#define BFC_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define BFC_NS_PER_SECOND UINT64_C(1000000000)

/* Returns a clock's time in nanoseconds; 0: the clock cannot be read. */
static inline uint64_t bfc_read_clock(clockid_t clock) {
    struct timespec time = {0};
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * BFC_NS_PER_SECOND + (uint64_t)time.tv_nsec;
}

/* Returns the time of the monotonic clock, to measure durations with. */
static inline uint64_t bfc_now_ns(void) {
    return bfc_read_clock(CLOCK_MONOTONIC);
}

/* Returns the time of the kernel's monotonic clock, even if another library replaces the C
 * library's clock functions (libfaketime). To be used for times that processes compare, and for
 * waits whose length must not depend on a clock that such a library has set or stopped. */
uint64_t bfc_kernel_now_ns(void);

static inline double bfc_now_seconds(void) {
    return (double)bfc_now_ns() / (double)BFC_NS_PER_SECOND;
}

/* Returns the time of day in nanoseconds since 1970, for values that other processes or people
 * read. */
static inline uint64_t bfc_wall_clock_ns(void) {
    return bfc_read_clock(CLOCK_REALTIME);
}

static inline struct timespec bfc_timespec(uint64_t ns) {
    return (struct timespec){.tv_sec = (time_t)(ns / BFC_NS_PER_SECOND),
                             .tv_nsec = (long)(ns % BFC_NS_PER_SECOND)};
}

/* Sleeps for at least `ns` nanoseconds, even if a signal handler runs meanwhile or the program's
 * clock is faked (libfaketime). It is no cancellation point, and keeps errno. */
void bfc_nap(long ns);

/*
 * To be called between two attempts at something that another thread will soon make possible. The
 * first 32 calls yield the processor, later ones sleep: a thread with a real-time priority that
 * only yields would never let a thread of lower priority run, which may be the awaited one. The
 * caller sets `*tries` to 0 before the first call.
 */
void bfc_back_off(unsigned *tries);

/*
 * Calls `is_over(argument)` until it returns true, at least once. False: `limit_ns` nanoseconds of
 * the kernel's clock have passed without that. Between two calls the thread sleeps for an eighth of
 * the time that it has waited so far, but no less than 20 and no more than 200 µs. The caller must
 * hold no lock that the awaited thread may need, and never the pool's lock.
 */
bool bfc_await(bool (*is_over)(void *argument), void *argument, uint64_t limit_ns);

/* Sleeps in short intervals until an atomic counter is 0. False: after `limit_ns` nanoseconds of
 * the kernel's clock the counter is not 0. */
bool bfc_await_zero(const unsigned *count, uint64_t limit_ns);

/*
 * A wait of limited length, for loops that do more than check a condition. It ends when the
 * monotonic clock reaches `until_ns`, or after `naps` more sleeps of `nap_ns` each, which take at
 * least as long. The sleeps are counted because the program's clock may stand still (libfaketime).
 */
struct bfc_bounded_wait {
    uint64_t until_ns, naps;
    long nap_ns;
};
struct bfc_bounded_wait bfc_bounded_wait_until(uint64_t until_ns, uint64_t now_ns, long nap_ns);
/* Sleeps for `nap_ns`. If the wait is over, returns false instead, without a sleep. */
bool bfc_bounded_wait_nap(struct bfc_bounded_wait *wait);

#endif
