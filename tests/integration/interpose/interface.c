/*
 * The public interface from C, by weak references: without bfcpreload the program says so and ends
 * well; with it, each function is tried. Status 0: all as it should be.
 */
#define BFCPRELOAD_WEAK
#include "interpose/api/bfcpreload.h"
#include "tests/integration/interpose/program.h"

#define EXPECT(condition)                                                                          \
    do                                                                                             \
        if (!(condition)) {                                                                        \
            printf("line %d: %s does not hold\n", __LINE__, #condition);                           \
            exit(1);                                                                               \
        }                                                                                          \
    while (0)

static const size_t KIB = 1024, MIB = 1024 * 1024;

static int info(CUdeviceptr at, struct bfcpreload_block *block) {
    return bfc_block_info((const void *)at, block, sizeof *block);
}

static struct bfcpreload_stats stats_now(void) {
    struct bfcpreload_stats stats;
    EXPECT(bfc_stats(-1, &stats, sizeof stats) == 0);
    return stats;
}

static void test_nothing_yet(void) {
    struct bfcpreload_block block;
    EXPECT(bfc_interface() >= BFCPRELOAD_INTERFACE);
    EXPECT(info(4096, &block) == BFCPRELOAD_NOT_POOLED);
    EXPECT(stats_now().reserved == 0);
    EXPECT(bfc_trim(SIZE_MAX) == 0);
    EXPECT(bfc_snapshot(-1, NULL, 0, 0) == 0);
    EXPECT(bfc_group_end() == BFCPRELOAD_IN_GROUP);
    EXPECT(bfc_stats(-1, NULL, 8) == BFCPRELOAD_BAD_ARGUMENT);
    EXPECT(bfc_group_begin(0) == BFCPRELOAD_BAD_ARGUMENT);
    EXPECT(bfc_group_begin(MIB) == BFCPRELOAD_NO_CONTEXT);
}

/* a, b and c in a row: what is free beside b when its neighbours are gone. */
static void test_block_info(void) {
    CUdeviceptr a, b, c;
    struct bfcpreload_block block;
    uint64_t start;
    CHECK(cuMemAlloc_v2(&a, 256 * KIB));
    CHECK(cuMemAlloc_v2(&b, 100000));
    CHECK(cuMemAlloc_v2(&c, 256 * KIB));
    EXPECT(info(b + 50000, &block) == 0);
    EXPECT(block.start == b && block.requested == 100000 && block.size == 100352);
    EXPECT(block.state == 0 && block.device == 0 && block.id != 0);
    EXPECT(bfc_block_info((const void *)b, (struct bfcpreload_block *)&start, sizeof start) == 0);
    EXPECT(start == b);
    CHECK(cuMemFree_v2(a));
    CHECK(cuMemFree_v2(c));
    EXPECT(info(b, &block) == 0 && block.free_before + block.free_after >= 512 * KIB);
    CHECK(cuMemFree_v2(b));
    EXPECT(info(b, &block) == 0 && block.state == 1 && block.requested == 0);
}

static void test_stats_snapshot_and_trim(void) {
    static struct bfcpreload_block blocks[64];
    struct bfcpreload_stats stats = stats_now();
    EXPECT(stats.allocations == stats.frees && stats.in_use == 0 && stats.ready == stats.reserved);
    EXPECT(stats.hits + stats.misses == stats.allocations && stats.largest_free > 0);
    long count = bfc_snapshot(0, blocks, 64, sizeof blocks[0]);
    EXPECT(count > 0 && count <= 64);
    uint64_t sum = 0;
    for (long i = 0; i < count; i++)
        sum += blocks[i].size;
    EXPECT(sum == stats.reserved);
    EXPECT(bfc_snapshot(7, NULL, 0, 0) == 0);
    EXPECT(bfc_trim(SIZE_MAX) == stats.reserved);
    EXPECT(stats_now().reserved == 0);
}

static void test_group(void) {
    CUdeviceptr parts[4], other;
    EXPECT(bfc_group_begin(8 * MIB) == 0);
    EXPECT(bfc_group_begin(8 * MIB) == BFCPRELOAD_IN_GROUP);
    for (int i = 0; i < 4; i++)
        CHECK(cuMemAlloc_v2(&parts[i], MIB - 100));
    for (int i = 1; i < 4; i++)
        EXPECT(parts[i] == parts[i - 1] + MIB);
    CHECK(cuMemAlloc_v2(&other, 16 * MIB)); /* no room: from elsewhere */
    EXPECT(other < parts[0] || other >= parts[0] + 8 * MIB);
    EXPECT(stats_now().in_use == 24 * MIB);
    EXPECT(bfc_group_end() == 0);
    EXPECT(stats_now().in_use == 20 * MIB && stats_now().blocks == 5);
    EXPECT(stats_now().requested == 20 * MIB - 400);
    CHECK(cuMemFree_v2(parts[2]));
    EXPECT(cuMemFree_v2(parts[2]) == CUDA_ERROR_INVALID_VALUE);
    for (int i = 0; i < 4; i++)
        if (i != 2)
            CHECK(cuMemFree_v2(parts[i]));
    CHECK(cuMemFree_v2(other));
    EXPECT(stats_now().in_use == 0 && stats_now().blocks == 0 && stats_now().requested == 0);
}

/* A block whose size is a multiple of 64 KiB starts at such a multiple, in a group as well; the
 * bytes of the group before it are freed at once. */
static void test_group_of_small_and_large(void) {
    CUdeviceptr small, large, last;
    EXPECT(bfc_group_begin(MIB) == 0);
    CHECK(cuMemAlloc_v2(&small, 1000));
    CHECK(cuMemAlloc_v2(&large, 128 * KIB));
    CHECK(cuMemAlloc_v2(&last, MIB - 64 * KIB)); /* no room from there on */
    EXPECT(large == small + 64 * KIB && last % (64 * KIB) == 0);
    EXPECT(last < small || last >= small + MIB);
    EXPECT(bfc_group_end() == 0);
    EXPECT(stats_now().blocks == 3 && stats_now().in_use == 1024 + 128 * KIB + MIB - 64 * KIB);
    CHECK(cuMemFree_v2(small));
    CHECK(cuMemFree_v2(large));
    CHECK(cuMemFree_v2(last));
}

int main(void) {
    if (!bfc_interface) {
        printf("no bfcpreload here\n");
        return 0;
    }
    test_nothing_yet();
    use_primary(0);
    test_block_info();
    test_stats_snapshot_and_trim();
    test_group();
    test_group_of_small_and_large();
    printf("all is well\n");
    return 0;
}
