/* Peer access covers blocks allocated before it was enabled and after [D]. */
#include "tests/conformance/gpu.h"

static const size_t bytes = 100 * KIB;

int main(void) {
    CUcontext owner;
    int can = 0;
    if (device_count() < 2)
        skip("two devices");
    MUST(DRIVER(cuDeviceCanAccessPeer)(&can, 1, 0));
    if (!can)
        skip("peer access between the first two devices");
    use_device(0);
    MUST(DRIVER(cuCtxGetCurrent)(&owner));
    void *before = new_block(bytes);
    use_device(1);
    say("enable", (int)DRIVER(cuCtxEnablePeerAccess)(owner, 0));
    say("enable again", (int)DRIVER(cuCtxEnablePeerAccess)(owner, 0));
    use_device(0);
    void *after = new_block(bytes);
    use_device(1);
    fill(NULL, before, bytes, 5);
    fill(NULL, after, bytes, 6);
    say("the peer's work", synchronize());
    use_device(0);
    tell("a block of before was written", holds(before, bytes, 5));
    tell("a block of after was written", holds(after, bytes, 6));
    say("free", release(before));
    say("free", release(after));
    say("free again", release(after));
    return 0;
}
