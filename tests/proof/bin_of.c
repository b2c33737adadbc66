/*
 * bin_of, for every size there is: the bin exists, a larger size is in no lower bin, and so every
 * block of a later bin than the request's is long enough.
 */
#include "pool/bins.h"
#include "tests/proof/prover.h"

static void prove(void) {
    uint64_t most = LARGEST_BLOCK >> GRANULE_BITS;
    uint64_t a = any_between(1, most), b = any_between(1, most);
    assert(bin_of(a) < BIN_COUNT);
    assert(a > b || bin_of(a) <= bin_of(b));
    assert(bin_of(a) >= bin_of(b) || a < b);
}
