/*
 * Random programs against the model, with the checker after every step. A program that fails is
 * shrunk, and its seed and the bytes that are left are printed. BFC_TEST_PROGRAMS says how many to
 * run.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/pool/program.h"

#define BYTES (STEP_BYTES * 400)

static int report(uint64_t seed, uint8_t *bytes, const char *fault) {
    size_t at, count = program_shrink(bytes, BYTES);
    fault = program_run(bytes, count, &at);
    printf("not ok 1 - seed %llu: %s\n# shrunk to:", (unsigned long long)seed, fault);
    for (size_t i = 0; i < count; i++)
        printf("%s%02x", i % STEP_BYTES ? "" : " ", bytes[i]);
    puts("");
    return 1;
}

int main(int argc, char **argv) {
    const char *setting = getenv("BFC_TEST_PROGRAMS");
    uint64_t programs = setting ? strtoull(setting, NULL, 10) : 300;
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    puts("1..1");
    for (uint64_t seed = first; seed < first + programs; seed++) {
        static uint8_t bytes[BYTES];
        size_t at;
        program_make(seed, bytes, BYTES);
        const char *fault = program_run(bytes, BYTES, &at);
        if (fault)
            return report(seed, bytes, fault);
    }
    puts("ok 1 - random programs agree with the model");
    return 0;
}
