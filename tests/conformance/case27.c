/* The same with a green context's stream: green contexts are parts of the primary one [D]. */
#include "tests/conformance/reuse.h"

/* A stream in a part of the device's processors. */
static CUstream green_stream(void) {
    CUdevResource all, part, rest;
    CUdevResourceDesc description;
    CUgreenCtx green;
    CUstream stream;
    unsigned groups = 1;
    MUST(DRIVER(cuDeviceGetDevResource)(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    MUST(DRIVER(cuDevSmResourceSplitByCount)(&part, &groups, &all, &rest, 0, 2));
    MUST(DRIVER(cuDevResourceGenerateDesc)(&description, &part, 1));
    MUST(DRIVER(cuGreenCtxCreate)(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    MUST(DRIVER(cuGreenCtxStreamCreate)(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    return stream;
}

int main(void) {
    const size_t bytes = 100 * KIB;
    use_device(0);
    CUstream slow = green_stream(), other = new_stream();
    void *block = new_block(bytes);
    slow_fill(slow, block, bytes, OLD, SLOW_MS);
    say("free", release(block));
    look_at_reuse(bytes, other);
    return 0;
}
