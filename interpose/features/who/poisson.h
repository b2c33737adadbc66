/*
 * Sampling by an amount, be it bytes or blocks: each unit of it is a sample with the same small
 * chance, and what is of several units is sampled if any of them is; pace.h counts blocks. A
 * sampled block stands for 1 / (its chance) blocks of its size, so sums over samples are unbiased
 * (Horvitz and Thompson, 1952). No state beyond the generator; needs no mathematics library.
 */
#ifndef BFC_INTERPOSE_POISSON_H
#define BFC_INTERPOSE_POISSON_H

#include <stdint.h>

/* Units to the next sample: exponential with the mean `interval`, below 2^60. `state`: of the
 * generator, never 0; it changes. */
uint64_t bfc_poisson_next(uint64_t *state, uint64_t interval);

/* How many a sampled one of `bytes` units stands for: 1 and more. */
double bfc_poisson_weight(uint64_t bytes, uint64_t interval);

#endif
