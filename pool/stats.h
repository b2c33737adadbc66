/*
 * The counters of a pool, in memory that other processes may read.
 *
 * One thread at a time writes, under the pool's lock; any number of threads read, without it. The
 * writer makes `sequence` odd before it changes a field and even after (a sequence lock, with the
 * fences that weakly ordered processors need); a reader copies the whole, and keeps the copy only
 * if `sequence` was the same even number before and after. The layout is part of the segment's:
 * fields of a fixed width, no padding.
 */
#ifndef BFC_POOL_STATS_H
#define BFC_POOL_STATS_H

#include <stdint.h>

/* All sizes in bytes. in_use + ready + pending + deferred = reserved. */
struct bfc_pool_stats {
    uint64_t sequence;
    /* the following are values as of now */
    uint64_t reserved;  /* taken from the device */
    uint64_t in_use;    /* blocks that the program holds, padding included */
    uint64_t requested; /* what the program asked for in those blocks */
    uint64_t ready;     /* bytes that are free, and safe to hand out at once */
    uint64_t pending;   /* bytes that are free, but work may still use them; awaited blocks too */
    uint64_t deferred;  /* bytes that are free, without a fence yet (freed while a capture was under
                           way) */
    uint64_t largest_free; /* the largest free block; refreshed off the hot path */
    uint64_t regions;      /* number of regions */
    uint64_t blocks;       /* number of blocks that the program holds */
    /* the highest values so far */
    uint64_t peak_reserved;
    uint64_t peak_in_use;
    uint64_t peak_requested;
    /* the following are sums since the pool began: counts, unless they say otherwise */
    uint64_t allocations; /* allocations that succeeded, from the cache or after growing */
    uint64_t frees;
    uint64_t hits;   /* allocations that did not have to ask the device */
    uint64_t misses; /* all other allocations */
    uint64_t splits;
    uint64_t merges;
    uint64_t reserve_calls; /* requests to the device, refused ones included */
    uint64_t refusals;      /* of these requests, those that the device refused */
    uint64_t release_calls;
    uint64_t waits; /* waits for fences, by the pool itself */
    uint64_t wait_ns;
    uint64_t retries;       /* allocations that succeeded only after something was given back */
    uint64_t out_of_memory; /* allocations that failed */
    uint64_t last_resorts;  /* times that the device refused and the pool tried its last resorts */
    uint64_t last_resorts_saved; /* of these times, those that served the allocation */
    uint64_t last_resort_ns;     /* time spent in last resorts */
    uint64_t invalid_frees;      /* frees that the pool refused: double or interior */
    uint64_t pending_reuses;     /* pending blocks handed out (ordered mode) */
};

_Static_assert(sizeof(struct bfc_pool_stats) == 31 * 8, "part of the segment's layout");

#endif
