/* Mixes words for hashes and pseudo-random numbers, by the finaliser of splitmix64 (G. L. Steele
 * and others, 2014). Not for secrets. All functions are pure and thread-safe. */
#ifndef BFC_BASE_MIX_H
#define BFC_BASE_MIX_H

#include <stdint.h>

#define BFC_MIX_STEP UINT64_C(0x9e3779b97f4a7c15)

/* Returns a word of which each bit depends on all bits of x. Different words have different
 * results, and 0 stays 0. */
static inline uint64_t bfc_mix(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Returns the hash of a sequence of words. `hash` is the hash of all words but the last, and `word`
 * is the last one. */
static inline uint64_t bfc_mix_join(uint64_t hash, uint64_t word) {
    return bfc_mix((hash ^ word) + BFC_MIX_STEP) + hash * 3;
}

#endif
