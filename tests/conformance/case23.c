/* Slow work writes A in one stream; A is freed; B is allocated and written in another stream. */
#include "tests/conformance/reuse.h"

static void look(size_t bytes) {
    CUstream slow = new_stream(), other = new_stream();
    void *block = new_block(bytes);
    slow_fill(slow, block, bytes, OLD, SLOW_MS);
    say("free", release(block));
    look_at_reuse(bytes, other);
    MUST(end_stream(slow));
    MUST(end_stream(other));
}

int main(void) {
    use_device(0);
    look(4096);
    look(3 * MIB);
    look(4096);
    return 0;
}
