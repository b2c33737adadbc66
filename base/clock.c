/* Clocks, sleeps, and waits of limited length. */
#include "base/clock.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/cancel.h"

uint64_t bfc_kernel_now_ns(void) {
    struct timespec time = {0};
    if (syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time) != 0)
        return bfc_now_ns();
    return (uint64_t)time.tv_sec * BFC_NS_PER_SECOND + (uint64_t)time.tv_nsec;
}

void bfc_nap(long ns) {
    struct timespec left = bfc_timespec((uint64_t)ns);
    int reason = errno, cancel = bfc_cancel_disable();
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
    bfc_cancel_restore(cancel);
    errno = reason;
}

void bfc_back_off(unsigned *tries) {
    enum { YIELDS = 32, NAP_NS = 50000 };
    if (*tries < YIELDS) {
        ++*tries;
        sched_yield();
    } else {
        bfc_nap(NAP_NS);
    }
}

bool bfc_await(bool (*is_over)(void *argument), void *argument, uint64_t limit_ns) {
    enum { LEAST_NAP_NS = 20000, MOST_NAP_NS = 200000 };
    uint64_t start = 0;
    while (!is_over(argument)) {
        uint64_t now = bfc_kernel_now_ns();
        start = start ? start : now;
        if (now - start >= limit_ns)
            return false;
        uint64_t nap = (now - start) / 8;
        nap = nap < LEAST_NAP_NS ? LEAST_NAP_NS : nap;
        bfc_nap((long)(nap < MOST_NAP_NS ? nap : MOST_NAP_NS));
    }
    return true;
}

static bool is_zero(void *count) {
    return bfc_load_seq_cst((const unsigned *)count) == 0;
}

bool bfc_await_zero(const unsigned *count, uint64_t limit_ns) {
    return bfc_await(is_zero, (void *)count, limit_ns);
}

struct bfc_bounded_wait bfc_bounded_wait_until(uint64_t until_ns, uint64_t now_ns, long nap_ns) {
    uint64_t length = until_ns > now_ns ? until_ns - now_ns : 0;
    return (struct bfc_bounded_wait){until_ns, length / (uint64_t)nap_ns + 1, nap_ns};
}

bool bfc_bounded_wait_nap(struct bfc_bounded_wait *wait) {
    if (wait->naps == 0 || bfc_now_ns() >= wait->until_ns)
        return false;
    wait->naps--;
    bfc_nap(wait->nap_ns);
    return true;
}
