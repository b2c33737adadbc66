/* Nowhere to put the pointer: an invalid value, and nothing is lost. */
#include "tests/conformance/gpu.h"

int main(void) {
    use_device(0);
    say("malloc(NULL, 4096)", allocate(NULL, 4096));
    void *block = new_block(4096);
    say("malloc(NULL, 4096) with a pool", allocate(NULL, 4096));
    say("free", release(block));
    return 0;
}
