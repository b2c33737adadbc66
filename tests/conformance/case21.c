/* cudaFreeAsync of cudaMalloc's memory is legal [D]; work before it in its stream still has the
 * block, so a later block is not touched by it. */
#include "tests/conformance/gpu.h"

int main(void) {
    const size_t bytes = MIB;
    use_device(0);
    CUstream busy = new_stream(), other = new_stream();
    void *first = new_block(bytes);
    slow_fill(busy, first, bytes, 1, 30);
    say("cudaFreeAsync on a busy stream", release_async(first, busy));
    void *second = new_block(bytes);
    fill(other, second, bytes, 2);
    say("synchronize", synchronize());
    tell("the later block is intact", holds(second, bytes, 2));
    say("free of it", release(second));
    say("free of the first again", release(first));
    return 0;
}
