/* Sampling by bytes: the distances' distribution, the weights, and that sums are unbiased. All
 * draws are of fixed seeds. */
#include <criterion/criterion.h>
#include <math.h>

#include "interpose/features/who/pace.h"

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

/* Allocations of one size, sampled as interpose/features/who/samples.c does. */
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

enum { SITES = 5, CALLS = 4000 };
static const uint64_t sizes[SITES] = {512, 4096, 65536, INTERVAL, 16 * INTERVAL};

static size_t next_site(uint64_t *order) {
    return (size_t)(bfc_poisson_next(order, 1000) % SITES);
}

/* Calls of several places in any order, by one thread whose interval changes with its samples. */
static void sample_sites(uint64_t *state, uint64_t order, struct estimate *estimates) {
    uint64_t interval = INTERVAL / 8;
    int64_t left = (int64_t)bfc_poisson_next(state, interval);
    unsigned samples = 0;
    for (int i = 0; i < CALLS; i++) {
        size_t site = next_site(&order);
        double bytes = (double)sizes[site];
        left -= (int64_t)sizes[site];
        if (left >= 0)
            continue;
        double weight = bfc_poisson_weight(sizes[site], interval);
        estimates[site].bytes += weight * bytes;
        estimates[site].variance += bytes * bytes * weight * (weight - 1);
        if (++samples % 16 == 0)
            interval = interval < 4 * INTERVAL ? interval * 2 : INTERVAL / 8;
        left = (int64_t)bfc_poisson_next(state, interval);
    }
}

Test(poisson, sums_by_site_are_unbiased_while_the_interval_changes) {
    uint64_t state = 7, order = 1;
    double truth[SITES] = {0};
    struct estimate sums[SITES] = {{0, 0}};
    for (int i = 0; i < STREAMS; i++)
        sample_sites(&state, 1, sums);
    for (int i = 0; i < CALLS; i++)
        truth[next_site(&order)] += STREAMS;
    for (int i = 0; i < SITES; i++)
        cr_expect_float_eq(sums[i].bytes / (truth[i] * (double)sizes[i]), 1,
                           5 * sqrt(sums[i].variance) / (truth[i] * (double)sizes[i]) + 1e-9, "%g",
                           (double)sizes[i]);
}
