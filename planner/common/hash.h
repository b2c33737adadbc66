/* Mixing of 64-bit words, after Steele's splitmix64. */
#ifndef BFC_PLAN_HASH_H
#define BFC_PLAN_HASH_H

#include <stdint.h>

static inline uint64_t hash_mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint64_t hash_join(uint64_t hash, uint64_t word) {
    return hash_mix(hash ^ word) + hash * 3;
}

/* A small generator of random numbers (splitmix64): the state is one word. */
static inline uint64_t random_next(uint64_t *state) {
    const uint64_t value = hash_mix(*state);
    *state += 0x9e3779b97f4a7c15u;
    return value;
}

/* Uniform in [0, 1). */
static inline double random_unit(uint64_t *state) {
    return (double)(random_next(state) >> 11) * 0x1p-53;
}

#endif
