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

/* Sizes are in bytes. in_use + ready + pending + deferred = reserved. */
struct bfc_pool_stats {
    uint64_t sequence;
    /* the following are values as of now */
    uint64_t reserved;  /* bytes that the pool has taken from the device */
    uint64_t in_use;    /* bytes of the blocks that the program holds, padding included */
    uint64_t requested; /* bytes that the program asked for in the blocks that it holds */
    uint64_t ready;     /* bytes that are free, and safe to hand out at once */
    /* bytes that are free, but that work may still use; those of awaited blocks too */
    uint64_t pending;
    /* bytes that are free but have no fence yet, since they were freed while a capture was under
     * way */
    uint64_t deferred;
    /* size of the largest free block; brought up to date when the pool is looked at, not at each
     * call */
    uint64_t largest_free;
    uint64_t regions; /* number of regions */
    uint64_t blocks;  /* number of blocks that the program holds */
    /* the highest values so far */
    uint64_t peak_reserved;
    uint64_t peak_in_use;
    uint64_t peak_requested;
    /* the following are sums since the pool began: counts, unless they say otherwise */
    /* allocations that succeeded, whether from free memory or after growing */
    uint64_t allocations;
    uint64_t frees;
    uint64_t hits;   /* allocations that did not have to ask the device */
    uint64_t misses; /* all other allocations */
    uint64_t splits;
    uint64_t merges;
    /* requests for memory that were made to the device, with those that it refused */
    uint64_t reserve_calls;
    uint64_t refusals; /* requests that the device refused */
    uint64_t release_calls;
    uint64_t waits; /* how often the pool itself waited for fences */
    uint64_t wait_ns;
    /* allocations that succeeded only after memory was given back to the device */
    uint64_t retries;
    uint64_t out_of_memory; /* allocations that failed */
    uint64_t last_resorts;  /* how often the device refused and the pool tried its last resorts */
    uint64_t last_resorts_saved; /* how often last resorts then served the allocation */
    uint64_t last_resort_ns;     /* time spent in last resorts */
    /* frees that the pool refused: of a block that is free already, or of an address inside a
     * block */
    uint64_t invalid_frees;
    uint64_t pending_reuses; /* how often a pending block was handed out (mode ordered) */
};

_Static_assert(sizeof(struct bfc_pool_stats) == 31 * 8, "part of the segment's layout");

#endif
