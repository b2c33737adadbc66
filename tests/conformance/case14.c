/* Free memory falls by an allocation and comes back with its free. */
#include "tests/conformance/gpu.h"

static size_t free_now(void) {
    size_t free_bytes, total;
    MUST(memory_info(&free_bytes, &total));
    return free_bytes;
}

int main(void) {
    const size_t bytes = 128 * MIB;
    use_device(0);
    MUST(release(new_block(1))); /* what the first allocation takes for ever is taken */
    size_t before = free_now();
    void *block = new_block(bytes);
    size_t between = free_now();
    tell("it fell by at least the block", before >= between && before - between >= bytes);
    tell("and by little more", before - between <= bytes + 4 * MIB);
    MUST(release(block));
    tell("it recovered", free_now() + 2 * MIB >= before);
    return 0;
}
