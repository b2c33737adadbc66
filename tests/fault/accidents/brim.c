/*
 * A device is filled to the brim: as many blocks as it has room for, of sizes that divide its
 * pages or are whole pages, round after round. And what was freed is all told of, whatever its
 * size.
 */
#include "tests/conformance/gpu.h"

enum { MOST = 8192 };
static const size_t sizes[] = {MIB, 2 * MIB, 256 * KIB, 16 * MIB, MIB};

static void fill_device(size_t size, size_t total) {
    static void *blocks[MOST];
    size_t count = 0;
    while (count < MOST && allocate(&blocks[count], size) == 0)
        count++;
    printf("blocks of %zu KiB: %s\n", size / KIB, count == total / size ? "all" : "too few");
    for (size_t i = 0; i < count; i++)
        MUST(release(blocks[i]));
}

static void look_at_odd_sizes(size_t before) {
    enum { BLOCKS = 10 };
    void *blocks[BLOCKS];
    size_t free_bytes, total;
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = new_block((BLOCKS - i) * 1234567);
    for (size_t i = 0; i < BLOCKS; i++)
        MUST(release(blocks[i]));
    MUST(memory_info(&free_bytes, &total));
    tell("nothing is missing", free_bytes == before);
}

int main(void) {
    size_t free_bytes, total;
    use_device(0);
    MUST(memory_info(&free_bytes, &total));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        fill_device(sizes[i], free_bytes);
    look_at_odd_sizes(free_bytes);
    return 0;
}
