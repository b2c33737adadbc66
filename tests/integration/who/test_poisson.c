/* Sampling by bytes: the distances' distribution, the weights, and that sums are unbiased. All
 * draws are of fixed seeds. */
#include <criterion/criterion.h>
#include <math.h>

#include "interpose/who/poisson.h"

enum { DRAWS = 1000000, STREAMS = 400 };
#define INTERVAL 524288

Test(poisson, distances_are_exponential) {
    uint64_t state = 1;
    double sum = 0, squares = 0;
    int above = 0;
    for (int i = 0; i < DRAWS; i++) {
        double distance = (double)bfc_poisson_next(&state, INTERVAL) / INTERVAL;
        sum += distance;
        squares += distance * distance;
        above += distance > 2;
    }
    /* Mean 1, second moment 2, e^-2 above 2; within five standard errors. */
    cr_expect_float_eq(sum / DRAWS, 1, 5 * 1.0 / sqrt(DRAWS));
    cr_expect_float_eq(squares / DRAWS, 2, 5 * sqrt(20.0 / DRAWS));
    cr_expect_float_eq((double)above / DRAWS, exp(-2), 5 * sqrt(0.117 / DRAWS));
}

Test(poisson, weights_are_one_by_the_chance) {
    for (double ratio = 1e-12; ratio < 1e6; ratio *= 1.37) {
        uint64_t interval = UINT64_C(1) << 40, bytes = (uint64_t)(ratio * (double)interval) + 1;
        double expected = -1 / expm1(-(double)bytes / (double)interval);
        cr_expect_float_eq(bfc_poisson_weight(bytes, interval) / expected, 1, 1e-7, "%g", ratio);
    }
    cr_expect_eq(bfc_poisson_weight(5, 0), 1);
}

struct estimate {
    double bytes, variance;
};

/* Allocations of one size, sampled as interpose/who/who.c does. */
static struct estimate sample(uint64_t *state, uint64_t bytes, int blocks) {
    struct estimate estimate = {0, 0};
    int64_t left = (int64_t)bfc_poisson_next(state, INTERVAL);
    for (int i = 0; i < blocks; i++) {
        left -= (int64_t)bytes;
        if (left >= 0)
            continue;
        double weight = bfc_poisson_weight(bytes, INTERVAL);
        estimate.bytes += weight * (double)bytes;
        estimate.variance += (double)bytes * (double)bytes * weight * (weight - 1);
        left = (int64_t)bfc_poisson_next(state, INTERVAL);
    }
    return estimate;
}

/* Over many streams: the mean is the truth, and the deviation is the standard error that is told.
 */
static void check_size(uint64_t bytes, int blocks) {
    uint64_t state = bytes;
    double truth = (double)bytes * blocks, sum = 0, squares = 0, variance = 0;
    for (int i = 0; i < STREAMS; i++) {
        struct estimate estimate = sample(&state, bytes, blocks);
        sum += estimate.bytes;
        squares += (estimate.bytes - truth) * (estimate.bytes - truth);
        variance += estimate.variance;
    }
    double error = sqrt(variance / STREAMS);
    cr_expect_float_eq(sum / STREAMS, truth, 5 * error / sqrt(STREAMS), "%g", (double)bytes);
    cr_expect_float_eq(sqrt(squares / STREAMS) / error, 1, 5 * sqrt(0.5 / STREAMS), "%g",
                       (double)bytes);
}

Test(poisson, sums_are_unbiased) {
    check_size(512, 100000);
    check_size(65536, 1000);
    check_size(INTERVAL, 1000);
    check_size(3 * INTERVAL, 1000);
}
