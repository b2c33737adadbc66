#include "interpose/features/who/pace.h"

#include <string.h>

#define LN_2 0.69314718055994531
#define FARTHEST 0x1p60

/* Returns a random number by xorshift64* (Vigna, 2016), and changes the generator's state. */
static uint64_t draw_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

/* Returns -ln(n / 2^64) to about six digits, by the series ln((1 + t) / (1 - t)) = 2 (t + t^3/3 +
 * t^5/5 + ...). */
static double minus_log(uint64_t n) {
    int leading = __builtin_clzll(n);
    double mantissa = (double)(n << leading) * 0x1p-63; /* the mantissa of n, in [1, 2) */
    double t = (mantissa - 1) / (mantissa + 1), t2 = t * t;
    double log = 2 * t * (1 + t2 * (1.0 / 3 + t2 * (1.0 / 5 + t2 * (1.0 / 7 + t2 / 9))));
    return (leading + 1) * LN_2 - log;
}

/* Returns e^-x for x >= 0: with x = k ln 2 + f, where k is an integer and f is below ln 2, it is
 * 2^-k e^-f. For e^-f the power series is used. */
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
    return distance < FARTHEST ? (uint64_t)distance : (uint64_t)FARTHEST;
}

/* The weight is 1 / (1 - e^-x) for x = bytes / interval. For a small x, 1 - e^-x would lose its
 * digits, so x (1 - x/2 + x^2/6) is used. */
double bfc_poisson_weight(uint64_t bytes, uint64_t interval) {
    if (interval == 0)
        return 1;
    double x = (double)bytes / (double)interval;
    return 1 / (x < 1e-4 ? x * (1 - x / 2 + x * x / 6) : 1 - exp_minus(x));
}

/* Returns the mean distance between samples of a class of sizes, in blocks of the class's least
 * size; 0: every block is a sample. */
static uint64_t distance_of(const struct bfc_pace *pace, unsigned bin) {
    unsigned log = BFC_PACE_LEAST_LOG + pace->doublings;
    return log < bin ? 0 : UINT64_C(2) << (log - bin);
}

/* Returns how many samples of this class of sizes count as recent at this time; with each tick one
 * stops counting. */
static uint64_t samples_owed(const struct bfc_pace *pace, uint64_t tick) {
    return pace->paid_at > tick ? pace->paid_at - tick : 0;
}

static uint8_t doublings_at(const struct bfc_pace *pace, uint64_t tick) {
    uint64_t samples = samples_owed(pace, tick);
    uint64_t doublings =
        samples > BFC_PACE_FREE ? (samples - BFC_PACE_FREE) / BFC_PACE_A_DOUBLING : 0;
    return (uint8_t)(doublings < BFC_PACE_MOST_DOUBLINGS ? doublings : BFC_PACE_MOST_DOUBLINGS);
}

/* The number of blocks from one sample to the next has an exponential distribution, which has no
 * memory: when its mean changes, the number that is left may be drawn anew without a bias. */
double bfc_pace_weigh(struct bfc_pace *pace, int16_t *countdown, unsigned bin, uint64_t tick,
                      uint64_t *random) {
    if (!pace->begun)
        pace->beyond = bfc_poisson_next(random, distance_of(pace, bin));
    pace->begun = true;
    int64_t left = *countdown + (int64_t)pace->beyond;
    double weight = left < 0 ? bfc_poisson_weight(1, distance_of(pace, bin)) : 0;
    if (left < 0)
        pace->paid_at = tick + samples_owed(pace, tick) + 1;
    uint8_t doublings = doublings_at(pace, tick);
    if (left < 0 || doublings != pace->doublings) {
        pace->doublings = doublings;
        left = (int64_t)bfc_poisson_next(random, distance_of(pace, bin));
    }
    *countdown = (int16_t)(left < BFC_PACE_LOOK ? left : BFC_PACE_LOOK);
    pace->beyond = (uint64_t)(left - *countdown);
    return weight;
}
