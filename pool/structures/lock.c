#include "pool/structures/lock.h"

#include <time.h>

#include "base/atomic.h"
#include "base/cancel.h"
#include "pool/structures/pause.h"

/* A thread that finds the lock taken stays away for some time: each time the lock passes to another
 * core, the pool's records must move to that core's cache, which is expensive. The following
 * numbers were chosen by measurement. */
/* the most pauses between two tries; all pauses before the first sleep take some 10 us */
#define MOST_PAUSES 256
#define FIRST_NAP_NS 100000
#define LONGEST_NAP_NS 1600000

static void nap_uncancelled(long ns) {
    int cancel = bfc_cancel_disable();
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
    bfc_cancel_restore(cancel);
}

void pool_lock_slowly(struct pool_lock *lock) {
    unsigned pauses = 1;
    long nap_ns = FIRST_NAP_NS;
    do {
        if (pauses <= MOST_PAUSES) {
            pause_for(pauses);
            pauses *= 2;
        } else {
            nap_uncancelled(nap_ns);
            nap_ns = nap_ns < LONGEST_NAP_NS ? nap_ns * 2 : nap_ns;
        }
        /* The load need not be ordered, since the exchange that takes the lock is an acquire. */
    } while (bfc_load_relaxed(&lock->taken) || bfc_exchange_acquire(&lock->taken, 1));
}
