/* The same with the stream destroyed before the free: its work goes on [D]. */
#include "tests/conformance/reuse.h"

int main(void) {
    const size_t bytes = 100 * KIB;
    use_device(0);
    CUstream slow = new_stream(), other = new_stream();
    void *block = new_block(bytes);
    slow_fill(slow, block, bytes, OLD, SLOW_MS);
    MUST(end_stream(slow));
    say("free", release(block));
    look_at_reuse(bytes, other);
    return 0;
}
