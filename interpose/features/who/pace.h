/*
 * How often stacks are taken: of each thread, for each power of two of size apart.
 *
 * The mean distance between samples, in bytes, begins small, and grows with the samples that a
 * class has taken lately: BFC_PACE_FREE are free, each further BFC_PACE_A_DOUBLING double it, and
 * one is forgotten each tick. So a program's first blocks are all seen or nearly so,
 * however fast they come; a loop takes no more than a sample each tick in the long run; and blocks
 * of one size leave the samples of others alone. A class whose blocks are no smaller than the
 * distance is sampled whole, and of others each block with the chance of its class's least size by
 * the distance.
 *
 * The distance depends on what has been, never on a sample to come, so that estimates by weight are
 * unbiased (poisson.h). No clock is read: a tick is of the thread's last look at it. Not
 * thread-safe.
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
    BFC_PACE_LOOK = 32, /* after so many blocks the ticks are looked at */
};

/* 2^12 microseconds. */
#define BFC_PACE_TICK_LOG 12

/* Of one class: sizes above half of 2^bin, up to that. All zero at first. */
struct bfc_pace {
    uint64_t beyond;  /* blocks before the next sample that are not in the countdown */
    uint64_t paid_at; /* the tick by which all samples will be forgotten */
    uint8_t doublings;
    bool begun;
};

/*
 * A block has brought its class's countdown, which counts blocks, below 0: how many blocks it
 * stands for, 1 and more; 0: it is no sample. Sets the countdown to that of the blocks that follow.
 * `tick`: the time; `random`: the generator's state, never 0.
 */
double bfc_pace_weigh(struct bfc_pace *pace, int16_t *countdown, unsigned bin, uint64_t tick,
                      uint64_t *random);

#endif
