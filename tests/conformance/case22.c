/* cudaFree of cudaMallocAsync's memory is legal [D]. */
#include "tests/conformance/gpu.h"

int main(void) {
    void *block = NULL;
    use_device(0);
    CUstream stream = new_stream();
    say("cudaMallocAsync", allocate_async(&block, MIB, stream));
    fill(stream, block, MIB, 5);
    MUST(synchronize());
    tell("it holds what was written", holds(block, MIB, 5));
    say("cudaFree of it", release(block));
    say("synchronize", synchronize());
    void *pooled = new_block(MIB);
    say("free of a plain block", release(pooled));
    return 0;
}
