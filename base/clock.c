/* Sleeps and bounded waits. */
#include "base/clock.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cancel.h"

uint64_t bfc_kernel_now_ns(void) {
    struct timespec time = {0};
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
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
