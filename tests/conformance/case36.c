/* The primary context released to zero and retained anew, and own contexts destroyed: their memory
 * is gone with them [D]. */
#include "tests/conformance/gpu.h"

static void release_to_zero(void) {
    unsigned flags;
    int active = 1;
    while (active) {
        MUST(cuDevicePrimaryCtxRelease(0));
        MUST(cuDevicePrimaryCtxGetState(0, &flags, &active));
    }
}

static void look_at_primary(void) {
    void *before = new_block(MIB);
    release_to_zero();
    use_device(0);
    say("free after the release to zero", release(before));
    void *block = new_block(MIB);
    fill(NULL, block, MIB, 1);
    MUST(synchronize());
    tell("a new block works", holds(block, MIB, 1));
    say("free of it", release(block));
}

static void look_at_own(void) {
    CUcontext context, popped;
    MUST(CREATE_CONTEXT(&context, 0));
    void *kept = new_block(MIB), *other = new_block(1000);
    say("free in an own context", release(other));
    MUST(cuCtxPopCurrent(&popped));
    MUST(cuCtxDestroy(context));
    say("free after its destruction", release(kept));
}

int main(void) {
    use_device(0);
    for (int round = 0; round < 2; round++) {
        look_at_primary();
        look_at_own();
    }
    return 0;
}
