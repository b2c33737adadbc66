/*
 * How often the call stack of an allocation is recorded as a sample. Each thread decides that for
 * itself, and for each class of sizes (a power of two) separately.
 *
 * The mean distance between samples, in bytes, begins small and grows with the number of recent
 * samples: the first BFC_PACE_FREE recent samples leave it as it is, each further
 * BFC_PACE_A_DOUBLING double it, and with each tick (about 4 ms) one sample stops counting as
 * recent. So nearly all of a program's first blocks are sampled, however fast they come; a loop
 * takes at most one sample a tick in the long run; and blocks of one class do not reduce the
 * samples of another. If the class's least size is at least the distance, each block is a sample;
 * else a block is one with the probability least size / distance.
 *
 * The distance depends on earlier blocks alone, so that weighted estimates are unbiased. No clock
 * is read here: the caller passes the time. Not thread-safe.
 */
#ifndef BFC_INTERPOSE_PACE_H
#define BFC_INTERPOSE_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    BFC_PACE_FREE = 256,
    BFC_PACE_A_DOUBLING = 64,
    BFC_PACE_LEAST_LOG = 17, /* the least distance, 128 KiB, as a power of two */
    BFC_PACE_MOST_DOUBLINGS = 40,
    /* bfc_pace_weigh is called after this many blocks of a class of sizes at most, so that it can
     * take samples at a shorter distance again once blocks have become rare */
    BFC_PACE_LOOK = 32,
};

#define BFC_PACE_TICK_LOG 12 /* a tick lasts 2^12 microseconds */

/* One thread's state for one class of sizes, those above 2^(bin - 1) and at most 2^bin bytes.
 * Begins as zeros. */
struct bfc_pace {
    /* how many blocks come before the next sample, in addition to those that are left in the
     * countdown which the caller passes to bfc_pace_weigh */
    uint64_t beyond;
    uint64_t paid_at; /* the tick from which on no sample taken so far counts as recent */
    uint8_t doublings;
    bool begun;
};

/*
 * To be called for a block that brought the countdown of its class of sizes below 0. Sets the
 * countdown to the number of blocks that need no further call. Returns how many blocks this block
 * stands for in estimates, 1 or more, or 0 if it is no sample. `tick` is the present time in ticks;
 * `random` points to the state of the random generator, which is never 0.
 */
double bfc_pace_weigh(struct bfc_pace *pace, int16_t *countdown, unsigned bin, uint64_t tick,
                      uint64_t *random);

/*
 * Poisson sampling: each unit, a byte or a block, is a sample with the same small probability; an
 * item of several units is sampled if any of them is. A sampled item stands for 1 / (its
 * probability) items of its size, so that sums over samples are unbiased (Horvitz and Thompson,
 * 1952). Uses no functions of the C mathematics library, because this library does not link it.
 */

/* Returns the distance to the next sample in units: exponentially distributed with the mean
 * `interval`, at most 2^60. `state` points to the state of the random generator, which is never 0
 * and changes. */
uint64_t bfc_poisson_next(uint64_t *state, uint64_t interval);

/* Returns how many items a sampled item of `bytes` units stands for, 1 or more, if samples are
 * `interval` units apart on average. */
double bfc_poisson_weight(uint64_t bytes, uint64_t interval);

#endif
