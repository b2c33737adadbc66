/* A block is freed twice: the second is an invalid value [F], and no block is handed out twice. */
#include "tests/conformance/gpu.h"

static void twice(size_t bytes) {
    void *neighbour = new_block(bytes), *block = new_block(bytes);
    printf("%zu bytes\n", bytes);
    say("first free", release(block));
    say("second free", release(block));
    void *first = new_block(bytes), *second = new_block(bytes);
    tell("later blocks are distinct", first != second && first != neighbour && second != neighbour);
    MUST(release(first));
    MUST(release(second));
    MUST(release(neighbour));
}

int main(void) {
    use_device(0);
    twice(512);
    twice(3 * MIB);
    return 0;
}
