/* After many blocks, half of them freed, nearly all memory that is said to be free can be had in
 * one piece: pages are mapped, so natively pieces do not matter. */
#include "tests/conformance/gpu.h"

enum { BLOCKS = 40 };

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
    return 0;
}
