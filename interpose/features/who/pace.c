#include "interpose/features/who/pace.h"

#include "interpose/features/who/poisson.h"

/* The mean distance between samples, in blocks of the class's least size; 0: each block is a
 * sample. */
static uint64_t distance_of(const struct bfc_pace *pace, unsigned bin) {
    unsigned log = BFC_PACE_LEAST_LOG + pace->doublings;
    return log < bin ? 0 : UINT64_C(2) << (log - bin);
}

/* Returns how many of the class's samples are not forgotten yet at this tick; one sample is
 * forgotten with each tick. */
static uint64_t samples_owed(const struct bfc_pace *pace, uint64_t tick) {
    return pace->paid_at > tick ? pace->paid_at - tick : 0;
}

static uint8_t doublings_at(const struct bfc_pace *pace, uint64_t tick) {
    uint64_t samples = samples_owed(pace, tick);
    uint64_t doublings =
        samples > BFC_PACE_FREE ? (samples - BFC_PACE_FREE) / BFC_PACE_A_DOUBLING : 0;
    return (uint8_t)(doublings < BFC_PACE_MOST_DOUBLINGS ? doublings : BFC_PACE_MOST_DOUBLINGS);
}

/* Distances are exponential and so have no memory: when the mean changes, the rest of the distance
 * may be drawn anew without a bias. */
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
