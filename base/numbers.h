/* Arithmetic of numbers of bytes. */
#ifndef BFC_BASE_NUMBERS_H
#define BFC_BASE_NUMBERS_H

#include <stdint.h>

static inline uint64_t bfc_min(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static inline uint64_t bfc_max(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* Returns the least multiple of `step` that is not below `bytes`. `bytes + step` must not
 * overflow. */
static inline uint64_t bfc_round_up(uint64_t bytes, uint64_t step) {
    return (bytes + step - 1) / step * step;
}

/* Returns the sum; UINT64_MAX if the sum is larger. */
static inline uint64_t bfc_add_saturating(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Returns the difference; 0 if the difference is negative. */
static inline uint64_t bfc_subtract_saturating(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

#endif
