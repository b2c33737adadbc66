/* Pseudo-random numbers (splitmix64), whose state is one word. */
#ifndef BFC_PLAN_RANDOM_H
#define BFC_PLAN_RANDOM_H

#include <stdint.h>

#include "base/mix.h"

static inline uint64_t random_next(uint64_t *state) {
    const uint64_t value = bfc_mix(*state + BFC_MIX_STEP);
    *state += BFC_MIX_STEP;
    return value;
}

/* Returns a random number from 0 to below 1, all equally likely. */
static inline double random_unit(uint64_t *state) {
    return (double)(random_next(state) >> 11) * 0x1p-53;
}

#endif
