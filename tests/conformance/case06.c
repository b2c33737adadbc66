/* Pointers that no device allocation returned: an invalid value [F]. */
#include "tests/conformance/gpu.h"

int main(void) {
    int variable = 1;
    use_device(0);
    void *block = new_block(1000), *heap = malloc(1000);
    say("free of a variable", release(&variable));
    say("free of heap memory", release(heap));
    say("free of a small number", release((void *)(uintptr_t)12345));
    say("free of a wild number", release((void *)(uintptr_t)0xdeadbeef00000000ull));
    say("free of the block", release(block));
    tell("the variable is intact", variable == 1);
    free(heap);
    return 0;
}
