/* After many blocks, half of them freed, nearly all memory that is said to be free can be had in
 * one piece: pages are mapped, so natively pieces do not matter. */
#include "tests/conformance/gpu.h"

enum { BLOCKS = 40 };

/* What fits natively beside a large block fits here too. */
static void take_in_two(void) {
    size_t free_bytes, total;
    void *large = NULL, *rest = NULL;
    MUST(memory_info(&free_bytes, &total));
    say("malloc of three quarters of it", allocate(&large, free_bytes / 4 * 3));
    say("malloc of the rest but 64 MiB", allocate(&rest, free_bytes / 4 - 64 * MIB));
    release(large);
    release(rest);
}

int main(void) {
    void *blocks[BLOCKS], *all = NULL;
    size_t free_bytes, total;
    use_device(0);
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = new_block((1 + i % 7) * MIB);
    for (size_t i = 0; i < BLOCKS; i += 2)
        MUST(release(blocks[i]));
    MUST(memory_info(&free_bytes, &total));
    say("malloc of all that is free but 64 MiB", allocate(&all, free_bytes - 64 * MIB));
    say("free of it", release(all));
    for (size_t i = 1; i < BLOCKS; i += 2)
        MUST(release(blocks[i]));
    MUST(memory_info(&free_bytes, &total));
    say("the same with nothing live", allocate(&all, free_bytes - 64 * MIB));
    say("free of it", release(all));
    say("free of it again", release(all));
    take_in_two();
    return 0;
}
