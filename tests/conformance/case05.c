/* Pointers into a block, not at its start: an invalid value [F]; the block is not touched. */
#include "tests/conformance/gpu.h"

int main(void) {
    const size_t bytes = 100 * KIB;
    use_device(0);
    char *block = new_block(bytes);
    fill(NULL, block, bytes, 7);
    say("free of start + 1", release(block + 1));
    say("free of start + 512", release(block + 512));
    say("free of the middle", release(block + bytes / 2));
    say("free of the last byte", release(block + bytes - 1));
    MUST(synchronize());
    tell("the block is intact", holds(block, bytes, 7));
    void *other = new_block(bytes);
    tell("another block is elsewhere",
         (char *)other + bytes <= block || block + bytes <= (char *)other);
    say("free of the start", release(block));
    say("free of the other", release(other));
    return 0;
}
