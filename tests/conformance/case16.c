/* A freed block's memory serves a later cudaMallocAsync, though nearly nothing else is left. */
#include "tests/conformance/gpu.h"

int main(void) {
    const size_t most = 192 * MIB;
    size_t free_bytes, total;
    void *async = NULL;
    use_device(0);
    CUstream stream = new_stream();
    MUST(release(new_block(1)));
    MUST(memory_info(&free_bytes, &total));
    hog(free_bytes - most - 64 * MIB);
    MUST(release(new_block(most)));
    say("cudaMallocAsync of most of the rest", allocate_async(&async, most, stream));
    say("synchronize", synchronize());
    say("cudaFreeAsync", release_async(async, stream));
    say("synchronize", synchronize());
    return 0;
}
