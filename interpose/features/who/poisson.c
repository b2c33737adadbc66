#include "interpose/features/who/poisson.h"

#include <string.h>

#define LN_2 0.69314718055994531
#define MOST 0x1p60

/* xorshift64*: Vigna, 2016. */
static uint64_t draw_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

/* Returns -ln(n / 2^64) to about six digits: ln((1 + t) / (1 - t)) = 2 (t + t^3/3 + t^5/5 + ...).
 */
static double minus_log(uint64_t n) {
    int leading = __builtin_clzll(n);
    double mantissa = (double)(n << leading) * 0x1p-63; /* in [1, 2) */
    double t = (mantissa - 1) / (mantissa + 1), t2 = t * t;
    double log = 2 * t * (1 + t2 * (1.0 / 3 + t2 * (1.0 / 5 + t2 * (1.0 / 7 + t2 / 9))));
    return (leading + 1) * LN_2 - log;
}

/* Returns e^-x for x >= 0 as 2^-k e^-f with f below ln 2, by the power series of e^-f. */
static double exp_minus(double x) {
    if (x > 700)
        return 0;
    uint64_t k = (uint64_t)(x / LN_2), bits = (1023 - k) << 52;
    double f = -(x - (double)k * LN_2), term = 1, sum = 1, scale;
    for (int i = 1; i <= 14; i++) {
        term *= f / i;
        sum += term;
    }
    memcpy(&scale, &bits, sizeof scale);
    return sum * scale;
}

uint64_t bfc_poisson_next(uint64_t *state, uint64_t interval) {
    uint64_t n = draw_random(state);
    double distance = minus_log(n ? n : 1) * (double)interval;
    return distance < MOST ? (uint64_t)distance : (uint64_t)MOST;
}

/* For a small x, 1 - e^-x would lose its digits, so x (1 - x/2 + x^2/6) is used. */
double bfc_poisson_weight(uint64_t bytes, uint64_t interval) {
    if (interval == 0)
        return 1;
    double x = (double)bytes / (double)interval;
    return 1 / (x < 1e-4 ? x * (1 - x / 2 + x * x / 6) : 1 - exp_minus(x));
}
