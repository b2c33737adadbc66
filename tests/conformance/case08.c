/* Blocks are aligned to at least 256 bytes: what the programming guide promises [D]. */
#include "tests/conformance/gpu.h"

enum { BLOCKS = 8 };

static void look(size_t bytes) {
    void *blocks[BLOCKS];
    bool aligned = true;
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = new_block(bytes);
        aligned &= (uintptr_t)blocks[i] % 256 == 0;
    }
    printf("blocks of %zu bytes are aligned to 256: %s\n", bytes, aligned ? "yes" : "no");
    for (int i = 0; i < BLOCKS; i++)
        MUST(release(blocks[i]));
}

int main(void) {
    use_device(0);
    look(1);
    look(255);
    look(257);
    look(64 * KIB);
    look(64 * KIB + 1);
    look(2 * MIB);
    look(2 * MIB + 1);
    return 0;
}
