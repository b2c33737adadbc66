/* How often stacks are taken, and that what is told by them is right: in bursts, of few large
 * blocks, of one size, over time. All draws are of fixed seeds. */
#include <criterion/criterion.h>
#include <math.h>

#include "interpose/features/who/pace.h"
#include "layout/segment.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
enum { RUNS = 150, TICKS_A_SECOND = 244 };

struct thread {
    struct bfc_pace paces[BFC_SIZE_BINS];
    int16_t left[BFC_SIZE_BINS];
    uint64_t random;
    uint64_t tick;
    double bytes, variance; /* estimates */
    unsigned samples;
};

static struct thread begin(int seed) {
    return (struct thread){.random = (uint64_t)seed * 0x9e3779b97f4a7c15 + 1};
}

/* As interpose/features/who/samples.h does. */
static bool allocate(struct thread *thread, uint64_t bytes) {
    unsigned bin = bfc_size_bin(bytes);
    if (--thread->left[bin] >= 0)
        return false;
    double weight =
        bfc_pace_weigh(&thread->paces[bin], &thread->left[bin], bin, thread->tick, &thread->random);
    thread->bytes += weight * (double)bytes;
    thread->variance += (double)bytes * (double)bytes * weight * (weight - 1) * (weight > 0);
    thread->samples += weight > 0;
    return weight > 0;
}

static void allocate_many(struct thread *thread, uint64_t bytes, int blocks) {
    for (int i = 0; i < blocks; i++)
        allocate(thread, bytes);
}

/* Without what was before. */
static void forget(struct thread *thread) {
    thread->bytes = thread->variance = 0;
    thread->samples = 0;
}

struct sizes {
    uint64_t least, steps; /* least + 0 to steps - 1 of `least` */
    int blocks;
};

/* Over many runs: the mean is the truth, and the deviation is the standard error that is told. */
static double check(struct sizes sizes, void (*before)(struct thread *)) {
    double truth = 0, sum = 0, squares = 0, variance = 0;
    for (int run = 1; run <= RUNS; run++) {
        struct thread thread = begin(run);
        before(&thread);
        forget(&thread);
        truth = 0;
        for (int i = 0; i < sizes.blocks; i++) {
            uint64_t bytes = sizes.least * (1 + (uint64_t)i * 7 % sizes.steps);
            truth += (double)bytes;
            allocate(&thread, bytes);
        }
        sum += thread.bytes;
        squares += (thread.bytes - truth) * (thread.bytes - truth);
        variance += thread.variance;
    }
    double error = sqrt(variance / RUNS);
    cr_expect_float_eq(sum / RUNS / truth, 1, 5 * error / sqrt(RUNS) / truth + 1e-9);
    if (error > 0)
        cr_expect_float_eq(sqrt(squares / RUNS) / error, 1, 0.25);
    return error / truth;
}

static void nothing(struct thread *thread) {
    (void)thread;
}

Test(pace, few_large_blocks_are_exact) {
    cr_expect_eq(check((struct sizes){128 * KIB + 1, 1, 100}, nothing), 0);
    cr_expect_eq(check((struct sizes){5555555, 1, 200}, nothing), 0);
    cr_expect_eq(check((struct sizes){300 * KIB, 37, 200}, nothing), 0);
    cr_expect_eq(check((struct sizes){4096 * MIB, 1, 10}, nothing), 0);
}

Test(pace, many_blocks_at_once) {
    cr_expect_lt(check((struct sizes){300 * KIB, 37, 5000}, nothing), 0.05);
    cr_expect_lt(check((struct sizes){4 * MIB, 1, 20000}, nothing), 0.1);
    cr_expect_lt(check((struct sizes){4 * KIB, 1, 100000}, nothing), 0.1);
    cr_expect_lt(check((struct sizes){4 * KIB, 20, 100000}, nothing), 0.1);
}

static void loop(struct thread *thread) {
    allocate_many(thread, 4 * MIB, 20000);
}

static void loop_and_pause(struct thread *thread) {
    loop(thread);
    thread->tick += 10 * TICKS_A_SECOND;
}

/* The distances are still long. */
Test(pace, behind_a_loop) {
    check((struct sizes){4 * MIB, 1, 2000}, loop);
}

/* Other sizes are not. */
Test(pace, other_sizes_behind_a_loop) {
    cr_expect_eq(check((struct sizes){9 * MIB, 1, 200}, loop), 0);
}

Test(pace, behind_a_pause) {
    cr_expect_lt(check((struct sizes){4 * MIB, 1, 2000}, loop_and_pause), 0.1);
}

/* A pause is noticed after the blocks after which ticks are looked at. */
Test(pace, a_pause_is_noticed) {
    struct thread thread = begin(1);
    loop_and_pause(&thread);
    allocate_many(&thread, 4 * MIB, BFC_PACE_LOOK + 1);
    forget(&thread);
    allocate_many(&thread, 4 * MIB, 50);
    cr_expect_eq(thread.samples, 50);
}

/* No more than one sample a tick, in the long run. */
Test(pace, samples_are_bounded) {
    for (int sizes = 0; sizes < 3; sizes++) {
        struct thread thread = begin(sizes + 1);
        for (int i = 0; i < 60 * TICKS_A_SECOND; i++, thread.tick++)
            allocate_many(&thread, sizes == 2 ? 64 * MIB : 64 * KIB, 1000);
        cr_expect_lt(thread.samples,
                     60 * TICKS_A_SECOND + BFC_PACE_FREE + 20 * BFC_PACE_A_DOUBLING);
        cr_expect_gt(thread.samples, 60 * TICKS_A_SECOND * 9 / 10);
    }
}
