/*
 * A made-up device for tests: addresses come from a counter, time from a hand-moved clock.
 *
 * Not thread-safe but for reserve and release, which take a mutex.
 */
#ifndef TESTS_UNIT_POOL_FAKE_UPSTREAM_H
#define TESTS_UNIT_POOL_FAKE_UPSTREAM_H

#include <pthread.h>

#include "pool/pool.h"

enum fake_call {
    FAKE_RESERVE,
    FAKE_RELEASE,
    FAKE_POLL,
    FAKE_WAIT,
    FAKE_NOW,
    FAKE_CALLS,
};
#define FAKE_WAYS 3 /* in which each call can go wrong */

/* One call goes wrong: the one that is the `at`-th of its kind, from 1 on; 0: none does. */
struct fake_fault {
    enum fake_call call;
    unsigned at, way;
};

struct fake_region {
    bfc_addr start;
    uint64_t bytes;
};

struct fake_upstream {
    uint64_t capacity; /* bytes that the device has */
    uint64_t gap;      /* bytes between two regions */
    bfc_addr next;
    uint64_t taken;
    struct fake_region regions[4096];
    unsigned count;
    bfc_fence completed; /* what poll answers */
    bfc_fence told;      /* the highest fence that poll or wait ever said was complete */
    bfc_fence reachable; /* fences that wait can bring to completion */
    uint64_t clock;      /* nanoseconds; a wait that times out moves it on */
    unsigned reserves, releases, polls, waits, nows;
    uint64_t last_wait_timeout;
    unsigned fail_reserve;   /* the n-th reserve from now returns BFC_FAILED */
    unsigned refuse_reserve; /* the next n are refused */
    unsigned refuse_release; /* and of releases the next n */
    unsigned bad_releases;   /* of what was not taken */
    struct fake_fault fault;
    pthread_mutex_t lock;
};

/* A device of `capacity` bytes, its first region at 0x7f0000000000. */
void fake_upstream_init(struct fake_upstream *fake, uint64_t capacity);

/* The table that a pool is created with. */
struct bfc_upstream fake_upstream_table(struct fake_upstream *fake);

#endif
