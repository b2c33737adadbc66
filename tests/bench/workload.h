/*
 * Workloads: sequences of allocations and frees with fixed seeds, made before they are timed.
 *
 * The five synthetic ones are random, train, traindyn, churn and pingpong; a trace is a CSV of
 * lifetimes, `id,lower,upper,size`, in which frees come before allocations of the same time.
 */
#ifndef TESTS_BENCH_WORKLOAD_H
#define TESTS_BENCH_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct op {
    uint32_t slot;  /* whose block */
    uint32_t bytes; /* to allocate into the slot; 0: free it */
};

struct workload {
    struct op *ops;
    size_t count, room;
    size_t setup; /* ops before the ones to be timed */
    uint32_t slots;
    uint64_t peak_live; /* most live bytes, in granules of 512 */
};

/* Makes the workload of that name; `scale` divides its length. False: there is no such name. */
bool workload_make(struct workload *w, const char *name, uint64_t seed, unsigned scale);

/* Churn with another number of live blocks. */
void workload_churn(struct workload *w, uint64_t seed, uint32_t live, size_t steps);

/* Reads a trace. False: it cannot be read. */
bool workload_read(struct workload *w, const char *path);

void workload_drop(struct workload *w);

/* The next number of a splitmix64 sequence (G. Steele and others, 2014). */
uint64_t next_random(uint64_t *state);

#endif
