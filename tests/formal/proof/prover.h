/*
 * What a proof asks of its prover. To be included before all else.
 *
 * Under a model checker (ESBMC, CBMC; BFC_PROVER is its word for an assumption) a value from
 * any_between is any one at all, and every assert is proved for all of them. Compiled by any other
 * compiler the same harness is a test of two parts: first all runs in which each value is one of
 * the ends of its range (all of it where it has few), in all combinations; then random ones.
 * A harness that defines TOO_MANY has too many combinations, and gets random runs alone.
 */
#ifndef TESTS_PROOF_PROVER_H
#define TESTS_PROOF_PROVER_H

#undef NDEBUG
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

/* The harness. */
void prove(void);

#if defined(BFC_PROVER)
uint64_t nondet_u64(void);

static inline uint64_t any_between(uint64_t least, uint64_t most) {
    uint64_t value = nondet_u64();
    BFC_PROVER(value >= least && value <= most);
    return value;
}

static inline uint64_t any_of(uint64_t least, uint64_t most, uint64_t few_least,
                              uint64_t few_most) {
    (void)few_least, (void)few_most;
    return any_between(least, most);
}

/* The compiler's own, which a prover may not know: of a number that is not 0. */
static inline int proof_clzll(uint64_t x) {
    uint64_t w = x >> 32 ? x >> 32 : x;
    int zeros = x >> 32 ? 0 : 32;
    uint64_t h = w >> 16 ? w >> 16 : w;
    zeros += w >> 16 ? 0 : 16;
    uint64_t b = h >> 8 ? h >> 8 : h;
    zeros += h >> 8 ? 0 : 8;
    uint64_t n = b >> 4 ? b >> 4 : b;
    zeros += b >> 4 ? 0 : 4;
    uint64_t p = n >> 2 ? n >> 2 : n;
    zeros += n >> 2 ? 0 : 2;
    return zeros + (p >> 1 ? 0 : 1);
}

static inline int proof_ctzll(uint64_t x) {
    return 63 - proof_clzll(x & -x);
}

#define __builtin_clzll(x) proof_clzll(x)
#define __builtin_ctzll(x) proof_ctzll(x)

int main(void) {
    prove();
}
#else
#include <stdio.h>

#define ENDS 3 /* values at each end of a range that are tried */
#define MOST_CHOICES 64

/* The choices of the run under way, as an odometer counts: the last one fastest. */
static struct { unsigned taken, count; } choices[MOST_CHOICES];
static unsigned chosen;
static bool is_random;
static uint64_t seed = 1;

/* All sizes of numbers are as likely as each other: small ones matter most. */
static inline uint64_t any_number(void) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    unsigned shift = (unsigned)(seed >> 58);
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed ^ seed >> 32) >> shift;
}

static inline uint64_t any_between(uint64_t least, uint64_t most) {
    uint64_t width = most - least;
    if (is_random)
        return width == UINT64_MAX ? any_number() : least + any_number() % (width + 1);
    assert(chosen < MOST_CHOICES);
    choices[chosen].count = width < 2 * ENDS ? (unsigned)width + 1 : 2 * ENDS;
    unsigned taken = choices[chosen++].taken;
    return taken < ENDS || width < 2 * ENDS ? least + taken : most - (2 * ENDS - 1 - taken);
}

/* As any_between, but of all combinations only those with a value of the second range are run. */
static inline uint64_t any_of(uint64_t least, uint64_t most, uint64_t few_least,
                              uint64_t few_most) {
    return is_random ? any_between(least, most) : any_between(few_least, few_most);
}

/* Turns the odometer. False: it has been all the way round. */
static inline bool next_choices(void) {
    while (chosen && ++choices[chosen - 1].taken == choices[chosen - 1].count)
        choices[--chosen].taken = 0;
    bool more = chosen;
    chosen = 0;
    return more;
}

int main(void) {
    unsigned long long runs = 0;
#if !defined(TOO_MANY)
    do {
        prove();
        runs++;
    } while (next_choices());
#endif
    is_random = true;
    for (int i = 0; i < 200000; i++)
        prove();
    printf("all %llu combinations of ends, and 200000 random runs\n", runs);
}
#endif

#endif
