/*
 * bins_next, over every content of the two bitmaps that agree with each other: the answer is a bin
 * in use, not before the one asked from, and no bin between them is in use.
 */
#define TOO_MANY
#include "tests/formal/proof/prover.h"

#include "pool/structures/bins.h"

static struct bins bins;

static bool in_use(unsigned bin) {
    return bins.words[bin / 64] >> (bin % 64) & 1;
}

void prove(void) {
    bins.words_in_use = 0;
    for (unsigned w = 0; w < BIN_WORDS; w++) {
        bins.words[w] = any_between(0, UINT64_MAX);
        if (w == BIN_COUNT / 64)
            bins.words[w] &= (UINT64_C(1) << (BIN_COUNT % 64)) - 1;
        if (bins.words[w])
            bins.words_in_use |= UINT64_C(1) << w;
    }
    unsigned from = (unsigned)any_between(0, BIN_COUNT);
    unsigned found = bins_next(&bins, from);
    assert(found >= from && found <= BIN_COUNT);
    assert(found == BIN_COUNT || in_use(found));
    if (found > from)
        assert(!in_use((unsigned)any_between(from, found - 1)));
}
