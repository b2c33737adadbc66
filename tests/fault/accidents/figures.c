/*
 * What cuMemGetInfo says is free can be had: in one call, and in pieces of one size. Before the
 * first allocation, when all is free again, between blocks that stay, while work may still use what
 * was freed, and when blocks that the pool does not hand out (BFC_BYPASS_ABOVE) are there.
 *
 * usage: figures [MIB of a piece]
 */
#include "tests/conformance/gpu.h"

enum { MOST = 8192 };
static size_t piece = 40 * MIB;

static size_t free_now(void) {
    size_t free_bytes, total;
    MUST(memory_info(&free_bytes, &total));
    tell("free is not more than all", free_bytes <= total);
    return free_bytes;
}

static bool in_one_call(size_t bytes) {
    void *block = NULL;
    bool had = allocate(&block, bytes) == 0;
    if (had)
        MUST(release(block));
    return had;
}

/* All but what is no whole piece. */
static bool in_pieces(size_t bytes) {
    static void *blocks[MOST];
    size_t count = 0;
    while (count < MOST && (count + 1) * piece <= bytes && allocate(&blocks[count], piece) == 0)
        count++;
    bool had = count == bytes / piece;
    for (size_t i = 0; i < count; i++)
        MUST(release(blocks[i]));
    return had;
}

/* `before`: what was free when nothing was in use. */
static void take_what_is_told(const char *when, size_t before) {
    size_t told = free_now();
    fprintf(stderr, "%s: %zu KiB of %zu\n", when, told / KIB, before / KIB);
    printf("%s: in one call: %s\n", when, in_one_call(told) ? "yes" : "no");
    printf("%s: in pieces: %s\n", when, in_pieces(told) ? "yes" : "no");
}

/* Freed blocks of all sizes, of which each eighth stays. */
static void between_blocks(size_t before) {
    enum { BLOCKS = 48 };
    void *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = new_block((i * 7 % 11 + 1) * (before / 800));
    for (size_t i = 0; i < BLOCKS; i++)
        if (i % 8 != 0)
            MUST(release(blocks[i]));
    take_what_is_told("between blocks", before);
    for (size_t i = 0; i < BLOCKS; i += 8)
        MUST(release(blocks[i]));
    tell("then all is free", free_now() == before);
}

static void under_way(size_t before) {
    enum { BLOCKS = 10 };
    void *blocks[BLOCKS];
    CUstream stream = new_stream();
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = new_block(9 * MIB);
        slow_fill(stream, blocks[i], MIB, 'u', 20);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        MUST(release(blocks[i]));
    size_t told = free_now();
    fprintf(stderr, "under way: %zu KiB of %zu\n", told / KIB, before / KIB);
    tell("what was freed under way is free", told == before);
    tell("and can be had", in_one_call(told));
    MUST(end_stream(stream));
}

/* As far as the context's own work may take memory, all of it is made before the first look. */
int main(int count, char **arguments) {
    size_t before;
    void *large;
    if (count > 1)
        piece = strtoul(arguments[1], NULL, 10) * MIB;
    use_device(0);
    kernel("slow_fill");
    before = free_now();
    take_what_is_told("at first", before);
    take_what_is_told("again", before);
    between_blocks(before);
    under_way(before);
    large = new_block(before / 2);
    tell("half is taken", before - free_now() <= before / 2 + 2 * MIB);
    take_what_is_told("beside the half", before);
    MUST(release(large));
    tell("in the end all is free", free_now() == before);
    return 0;
}
