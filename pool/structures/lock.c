#include "pool/structures/lock.h"

#include <time.h>

#include "base/atomic.h"
#include "base/cancel.h"
#include "pool/structures/pause.h"

/* Passing the lock to another core is expensive because the pool's records move to that core's
 * cache. The numbers were chosen by measurement. */
#define MOST_PAUSES 256 /* between two tries; all pauses before the first nap take some 10 us */
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
        /* A relaxed load is enough here, since the exchange acquires. */
    } while (bfc_load_relaxed(&lock->taken) || bfc_exchange_acquire(&lock->taken, 1));
}
