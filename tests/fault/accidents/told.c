/*
 * What is told to be free while the library's own thread looks at freed blocks and gives memory
 * back (BFC_TRIM_IDLE): as natively, all that was freed.
 */
#include "tests/conformance/gpu.h"

enum { ROUNDS = 80, BLOCKS = 6 };

static size_t free_now(void) {
    size_t free_bytes, total;
    MUST(memory_info(&free_bytes, &total));
    return free_bytes;
}

/* Every third one in the order of its stream. */
static void use_and_free(CUstream stream) {
    void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = new_block(3 * MIB);
        MUST(cuMemsetD8Async(address(blocks[i]), 1, 3 * MIB, stream));
    }
    for (int i = 0; i < BLOCKS; i++)
        MUST(i % 3 == 2 ? release_async(blocks[i], stream) : release(blocks[i]));
    MUST(synchronize());
}

int main(void) {
    use_device(0);
    CUstream stream = new_stream();
    MUST(release(new_block(100)));
    size_t before = free_now();
    int low = 0;
    for (int i = 0; i < ROUNDS; i++) {
        use_and_free(stream);
        low += free_now() + 4 * MIB < before;
    }
    tell("all that was freed was told", low == 0);
    return 0;
}
