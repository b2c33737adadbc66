/* A reset with live blocks: their memory is gone, later frees of them are invalid [F ucx#10606],
 * and new blocks come as before. */
#include "tests/conformance/gpu.h"

int main(void) {
    size_t before, after, total;
    use_device(0);
    MUST(release(new_block(1)));
    MUST(memory_info(&before, &total));
    for (int round = 0; round < 2; round++) {
        void *small = new_block(1000), *large = new_block(200 * MIB);
        say("reset", reset_device());
        use_device(0);
        say("free of a small one", release(small));
        say("free of a large one", release(large));
        MUST(memory_info(&after, &total));
        tell("the memory came back", after + 8 * MIB >= before);
        void *block = new_block(4096);
        fill(NULL, block, 4096, 9);
        MUST(synchronize());
        tell("a new block works", holds(block, 4096, 9));
        say("free of it", release(block));
    }
    return 0;
}
