/*
 * The counters of a pool, in memory that other processes may read.
 *
 * One thread at a time writes, under the pool's lock; any number of threads read without it. The
 * writer makes `sequence` odd before it changes a field, and even after (a sequence lock, with the
 * memory barriers that weakly ordered processors need). A reader copies the whole structure, and
 * keeps the copy only if `sequence` was the same even number before and after. The layout is part
 * of the shared-memory segment that a job publishes: fields of a fixed width, no padding.
 */
#ifndef BFC_POOL_STATS_H
#define BFC_POOL_STATS_H

#include <stdint.h>

/* Sizes are in bytes. in_use + ready + pending + deferred = reserved. */
struct bfc_pool_stats {
    uint64_t sequence;
    /* From here on: values as of now. */
    uint64_t reserved;  /* bytes that the pool has taken from the device */
    uint64_t in_use;    /* bytes of the blocks that the program holds, padding included */
    uint64_t requested; /* bytes that the program asked for in the blocks that it holds */
    uint64_t ready;     /* bytes that are free, and safe to hand out at once */
    /* bytes that are free, but that work on the device may still use, including blocks that were
     * freed in the order of a stream */
    uint64_t pending;
    /* bytes that are free but have no fence yet, because they were freed during a stream capture */
    uint64_t deferred;
    /* bytes of the largest free block; brought up to date by bfc_pool_read_stats, not at each
     * call */
    uint64_t largest_free;
    /* number of regions: ranges that the pool took from the device with one call each */
    uint64_t regions;
    uint64_t blocks; /* number of blocks that the program holds */
    /* From here on: the highest values so far of the fields of the same names. */
    uint64_t peak_reserved;
    uint64_t peak_in_use;
    uint64_t peak_requested;
    /* From here on: sums since the pool began. They are counts, except those that end in _ns. */
    /* allocations that succeeded */
    uint64_t allocations;
    uint64_t frees;
    uint64_t hits;   /* allocations that succeeded without asking the device for memory */
    uint64_t misses; /* allocations that succeeded after the device was asked for memory */
    uint64_t splits;
    uint64_t merges;
    /* requests for memory that the pool made to the device, refused ones included */
    uint64_t reserve_calls;
    uint64_t refusals; /* requests for memory that the device refused */
    uint64_t release_calls;
    uint64_t waits; /* how often the pool itself waited for fences to complete */
    uint64_t wait_ns;
    /* allocations that succeeded only after the device had refused memory once, for example because
     * the pool gave other memory back */
    uint64_t retries;
    uint64_t out_of_memory; /* allocations that failed */
    /* how often the device refused memory and the pool tried its last resorts: to wait for free
     * blocks, to give memory back and ask again */
    uint64_t last_resorts;
    uint64_t last_resorts_saved; /* how often an allocation succeeded by a last resort */
    uint64_t last_resort_ns;     /* nanoseconds spent in last resorts */
    /* frees that the pool refused: of a block that is free already, or of an address inside a
     * block */
    uint64_t invalid_frees;
    /* how often an allocation handed out a pending block (mode `ordered`) */
    uint64_t pending_reuses;
};

_Static_assert(sizeof(struct bfc_pool_stats) == 31 * 8, "part of the segment's layout");

#endif
