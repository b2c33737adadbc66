/* Pseudo-random numbers by the generator splitmix64. Its state is one 64-bit number, the seed at
 * first. */
#ifndef BFC_PLAN_RANDOM_H
#define BFC_PLAN_RANDOM_H

#include <stdint.h>

#include "base/mix.h"

static inline uint64_t random_next(uint64_t *state) {
    const uint64_t value = bfc_mix(*state + BFC_MIX_STEP);
    *state += BFC_MIX_STEP;
    return value;
}

/* Returns a random number that is at least 0 and below 1. */
static inline double random_unit(uint64_t *state) {
    return (double)(random_next(state) >> 11) * 0x1p-53;
}

#endif
