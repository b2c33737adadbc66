/*
 * Random programs over an upstream of which one call goes wrong: for each of its five functions,
 * each of its first calls in the program refuses, fails or answers nonsense, in each of three ways
 * (fake_upstream.c). After every step the checker must be content, no block may be handed out
 * before its fence was said to be complete, and at the end every region must have gone back.
 *
 * BFC_TEST_PROGRAMS says over how many programs.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/pool/program.h"

#define BYTES (STEP_BYTES * 250)
#define MOST_CALLS 12 /* of a function in one program, from the first on */

static const char *const names[FAKE_CALLS] = {"reserve", "release", "poll", "wait", "now"};

static unsigned long long runs[FAKE_CALLS];

static int run(uint64_t seed, const uint8_t *bytes, struct fake_fault fault) {
    size_t step;
    const char *what = program_run_with(bytes, BYTES, fault, NULL, &step);
    runs[fault.call]++;
    if (what)
        printf("not ok 1 - seed %llu, %s call %u goes wrong in way %u: at byte %zu: %s\n",
               (unsigned long long)seed, names[fault.call], fault.at, fault.way, step, what);
    return what != NULL;
}

/* Every call of the program's, or the first ones; false: one of them did harm. */
static int run_all(uint64_t seed) {
    static uint8_t bytes[BYTES];
    unsigned calls[FAKE_CALLS];
    size_t step;
    program_make(seed, bytes, BYTES);
    program_run_with(bytes, BYTES, (struct fake_fault){.at = 0}, calls, &step);
    for (int call = 0; call < FAKE_CALLS; call++)
        for (unsigned at = 1; at <= calls[call] && at <= MOST_CALLS; at++)
            for (unsigned way = 0; way < FAKE_WAYS; way++)
                if (run(seed, bytes, (struct fake_fault){(enum fake_call)call, at, way}))
                    return 1;
    return 0;
}

int main(void) {
    const char *setting = getenv("BFC_TEST_PROGRAMS");
    uint64_t programs = setting ? strtoull(setting, NULL, 10) : 24;
    int missed = 0;
    puts("1..1");
    for (uint64_t seed = 1; seed <= programs; seed++)
        if (run_all(seed))
            return 1;
    for (int call = 0; call < FAKE_CALLS; call++) {
        printf("# %s: %llu programs in which a call went wrong\n", names[call], runs[call]);
        missed |= !runs[call];
    }
    puts(missed && programs >= 24 ? "not ok 1 - a function of the upstream was never called"
                                  : "ok 1 - nothing that the upstream does wrong harms the pool");
    return missed && programs >= 24;
}
