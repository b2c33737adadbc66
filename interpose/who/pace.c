/* How often stacks are taken. */
#include "interpose/who/pace.h"

#include "interpose/who/poisson.h"

/* 0: all blocks of the class are samples. */
static uint64_t distance_of(const struct bfc_pace *pace, unsigned bin) {
    unsigned log = BFC_PACE_LEAST_LOG + pace->doublings;
    return log < bin ? 0 : UINT64_C(1) << log;
}

/* Samples that are not forgotten yet. A tick's number may wrap. */
static uint32_t owed(const struct bfc_pace *pace, uint32_t tick) {
    int32_t ticks = (int32_t)(pace->paid_at - tick);
    return ticks > 0 ? (uint32_t)ticks : 0;
}

static uint8_t doublings_at(const struct bfc_pace *pace, uint32_t tick) {
    uint32_t samples = owed(pace, tick), above = samples - BFC_PACE_FREE;
    uint32_t doublings = samples > BFC_PACE_FREE ? above / BFC_PACE_A_DOUBLING : 0;
    return (uint8_t)(doublings < BFC_PACE_MOST_DOUBLINGS ? doublings : BFC_PACE_MOST_DOUBLINGS);
}

/* As far as the ticks need not be looked at. */
static void hold_back(struct bfc_pace *pace, int64_t *countdown, unsigned bin) {
    int64_t most = (int64_t)(UINT64_C(1) << (bin + BFC_PACE_LOOK_LOG));
    pace->beyond = *countdown > most ? (uint64_t)(*countdown - most) : 0;
    *countdown -= (int64_t)pace->beyond;
}

/* The distances are exponential, so one may be drawn anew between two blocks at any time. */
double bfc_pace_weigh(struct bfc_pace *pace, int64_t *countdown, uint64_t bytes, unsigned bin,
                      uint32_t tick, uint64_t *random) {
    if (!pace->begun)
        pace->beyond = bfc_poisson_next(random, distance_of(pace, bin));
    pace->begun = true;
    *countdown += (int64_t)pace->beyond;
    bool is_sample = *countdown < 0;
    double weight = is_sample ? bfc_poisson_weight(bytes, distance_of(pace, bin)) : 0;
    if (is_sample)
        pace->paid_at = tick + owed(pace, tick) + 1;
    uint8_t doublings = doublings_at(pace, tick);
    if (is_sample || doublings != pace->doublings) {
        pace->doublings = doublings;
        *countdown = (int64_t)bfc_poisson_next(random, distance_of(pace, bin));
    }
    hold_back(pace, countdown, bin);
    return weight;
}
