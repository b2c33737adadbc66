/*
 * Allocates and frees until pages have moved, says so, and stays until its input ends: for bfcstat
 * to look at.
 */
#include "tests/conformance/gpu.h"

enum { BLOCKS = 40 };

int main(void) {
    void *blocks[BLOCKS];
    use_device(0);
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = new_block((i + 1) * MIB / 2);
    for (int i = 0; i < BLOCKS; i += 2)
        MUST(release(blocks[i]));
    MUST(release(new_block(150 * MIB)));
    puts("ready");
    fflush(stdout);
    getchar();
    return 0;
}
