/*
 * An exit handler that the program registered before its first CUDA call runs after the driver's
 * own: each free is then answered with the driver's error, also that of a pointer that never was a
 * block.
 */
#include "tests/conformance/gpu.h"

static char *blocks[3];

static void free_after_driver(void) {
    say("a block", (int)release(blocks[0]));
    say("the same again", (int)release(blocks[0]));
    say("inside a block", (int)release(blocks[1] + 512));
    say("an odd address", (int)release(blocks[1] + 1));
    say("no address of the device", (int)release((void *)(uintptr_t)4096));
    say("freed before the end", (int)release(blocks[2]));
    fflush(stdout);
}

int main(void) {
    atexit(free_after_driver);
    use_device(0);
    for (int i = 0; i < 3; i++)
        blocks[i] = new_block(1 * MIB);
    say("before the end", (int)release(blocks[2]));
    return 0;
}
