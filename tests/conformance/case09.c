/*
 * cuMemGetAddressRange at an allocation's first, middle and last byte: the program's allocation
 * [D]. How large the driver says it is beyond what was asked is its own affair, but the same for
 * both.
 */
#include "tests/conformance/gpu.h"

static void look(const char *block, size_t asked, size_t offset) {
    CUdeviceptr start = 0, only = 0;
    size_t size = 0, alone = 0;
    say("range", (int)DRIVER(cuMemGetAddressRange)(&start, &size, address(block + offset)));
    tell("it starts where the allocation does", start == address(block));
    tell("it holds what was asked for", size >= asked);
    printf("~ of %zu bytes, at %zu: %zu\n", asked, offset, size);
    MUST(DRIVER(cuMemGetAddressRange)(&only, NULL, address(block + offset)));
    MUST(DRIVER(cuMemGetAddressRange)(NULL, &alone, address(block + offset)));
    tell("each alone is the same", only == start && alone == size);
}

int main(void) {
    const size_t sizes[] = {1, 1000, 4096, 100001, 3 * MIB + 1};
    enum { COUNT = sizeof sizes / sizeof sizes[0] };
    char *blocks[COUNT];
    use_device(0);
    for (int i = 0; i < COUNT; i++)
        blocks[i] = new_block(sizes[i]);
    for (int i = 0; i < COUNT; i++) {
        look(blocks[i], sizes[i], 0);
        look(blocks[i], sizes[i], sizes[i] / 2);
        look(blocks[i], sizes[i], sizes[i] - 1);
    }
    say("neither asked for", (int)DRIVER(cuMemGetAddressRange)(NULL, NULL, address(blocks[0])));
    for (int i = 0; i < COUNT; i++)
        MUST(release(blocks[i]));
    return 0;
}
