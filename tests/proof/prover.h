/*
 * What a proof asks of its prover.
 *
 * Under ESBMC or CBMC an `any` value is any value at all, `assume` keeps only the runs in which its
 * condition holds, and every assert is proved for all that are left. Compiled by any other compiler
 * the same harness is a test: values are random, and a run whose assumption fails is not counted.
 */
#ifndef TESTS_PROOF_PROVER_H
#define TESTS_PROOF_PROVER_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

/* The harness. */
static void prove(void);

#if defined(__ESBMC)
uint64_t nondet_u64(void);
#define any_value() nondet_u64()
#define assume(condition) __ESBMC_assume(condition)

int main(void) {
    prove();
}
#elif defined(__CPROVER)
uint64_t nondet_u64(void);
#define any_value() nondet_u64()
#define assume(condition) __CPROVER_assume(condition)

int main(void) {
    prove();
}
#else
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdio.h>

static uint64_t seed = 1;
static jmp_buf next_run;

/* All sizes of numbers are as likely as each other: small ones matter most. */
static uint64_t any_value(void) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    unsigned shift = (unsigned)(seed >> 58);
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed ^ seed >> 32) >> shift;
}

#define assume(condition)       \
    do {                        \
        if (!(condition))       \
            longjmp(next_run, 1); \
    } while (0)

int main(void) {
    static volatile unsigned tried, held;
    for (tried = 0; tried < 200000; tried++)
        if (!setjmp(next_run)) {
            prove();
            held++;
        }
    printf("%u of %u random runs met the assumptions, and held\n", held, tried);
    return held ? 0 : 1;
}
#endif

/* A value from `least` to `most`. */
static inline uint64_t any_between(uint64_t least, uint64_t most) {
    uint64_t value = any_value();
#if !defined(__ESBMC) && !defined(__CPROVER)
    value = most - least == UINT64_MAX ? value : least + value % (most - least + 1);
#endif
    assume(value >= least && value <= most);
    return value;
}

#endif
