/*
 * The question of cases 23 to 27: work under way still writes a block that is freed; is a block
 * that is allocated afterwards, and written in another stream at once, left alone by it?
 */
#ifndef BFC_TESTS_CONFORMANCE_REUSE_H
#define BFC_TESTS_CONFORMANCE_REUSE_H

#include "tests/conformance/gpu.h"

enum { SLOW_MS = 25, OLD = 1, NEW = 2 };

/* Slow work wrote a block of this size, which was then freed: takes another one, and looks. */
static UNUSED void look_at_reuse(size_t bytes, CUstream stream) {
    void *block = new_block(bytes);
    fill(stream, block, bytes, NEW);
    MUST(synchronize());
    printf("a new block of %zu bytes is intact: %s\n", bytes,
           holds(block, bytes, NEW) ? "yes" : "no");
    MUST(release(block));
}

#endif
