/*
 * Poisson sampling. Each unit, a byte or a block, is a sample with the same small probability; an
 * item of several units is sampled if any of them is. A sampled item stands for 1 / (its
 * probability) items of its size, so that sums over samples are unbiased (Horvitz and Thompson,
 * 1952). Uses no mathematics library, which this library does not link. Thread-safe.
 */
#ifndef BFC_INTERPOSE_POISSON_H
#define BFC_INTERPOSE_POISSON_H

#include <stdint.h>

/* Returns the units to the next sample: exponential with the mean `interval`, at most 2^60. `state`
 * is the random generator's, never 0, and changes. */
uint64_t bfc_poisson_next(uint64_t *state, uint64_t interval);

/* Returns how many items a sampled one of `bytes` units stands for, 1 or more. */
double bfc_poisson_weight(uint64_t bytes, uint64_t interval);

#endif
