/*
 * bin_of, for every size there is: the bin exists, a larger size is in no lower bin, and so every
 * block of a later bin than the request's is long enough.
 */
#include "tests/formal/proof/prover.h"

#include "pool/structures/bins.h"

void prove(void) {
    uint64_t a = any_between(1, MOST_GRANULES), b = any_between(1, MOST_GRANULES);
    assert(bin_of(a) < BIN_COUNT);
    assert(a > b || bin_of(a) <= bin_of(b));
    assert(bin_of(a) >= bin_of(b) || a < b);
}
