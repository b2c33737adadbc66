/*
 * A peer's slow work writes a block that its owner frees: a block of its size that is allocated
 * then, and written at once, is left alone by it.
 *
 * Natively a free does not wait for peers [F pytorch#196257], so this is promised by us alone.
 */
#include "tests/conformance/gpu.h"

/* As large as the pool's first region, so that a block lies elsewhere only for a reason. */
static const size_t bytes = 2 * MIB;

static void look(CUstream peer, CUstream own) {
    void *block = new_block(bytes);
    use_device(1);
    slow_fill(peer, block, bytes, 1, 25);
    use_device(0);
    say("free", release(block));
    block = new_block(bytes);
    fill(own, block, bytes, 2);
    MUST(synchronize());
    use_device(1);
    MUST(synchronize());
    use_device(0);
    tell("the new block is intact", holds(block, bytes, 2));
    MUST(release(block));
}

int main(void) {
    CUcontext owner;
    use_device(0);
    MUST(cuCtxGetCurrent(&owner));
    CUstream own = new_stream();
    use_device(1);
    CUstream peer = new_stream();
    MUST(cuCtxEnablePeerAccess(owner, 0));
    use_device(0);
    for (int round = 0; round < 3; round++)
        look(peer, own);
    return 0;
}
