/*
 * While a stream captures, what is freed of memory that another device's context may use is there
 * again before an allocation fails. As natively, where a free has given it back.
 */
#include "tests/conformance/gpu.h"

/* Its context may use device 0's memory, and has memory of its own. */
static void use_as_peer(void) {
    CUcontext owner;
    use_device(0);
    MUST(DRIVER(cuCtxGetCurrent)(&owner));
    use_device(1);
    MUST(DRIVER(cuCtxEnablePeerAccess)(owner, 0));
    new_block(MIB);
    use_device(0);
}

int main(void) {
    CUgraph graph;
    void *block;
    use_as_peer();
    CUstream stream = new_stream();
    void *parts[] = {new_block(300 * MIB), new_block(300 * MIB)};
    MUST(begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(release(parts[0]));
    MUST(release(parts[1]));
    say("allocate while a stream captures", allocate(&block, 700 * MIB));
    say("end of the capture", end_capture(stream, &graph));
    return 0;
}
