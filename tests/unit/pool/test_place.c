/* Blocks at given places, and regions that are set apart for them. */
#include <criterion/criterion.h>

#include "tests/unit/pool/fake_upstream.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

static struct fake_upstream fake;
static struct bfc_pool *pool;
static struct bfc_pool_config config;
static bfc_addr apart; /* a region of 8 MiB */

static void open_pool(void) {
    struct bfc_upstream upstream = fake_upstream_table(&fake);
    cr_assert_eq(bfc_pool_create(&pool, &config, &upstream), BFC_OK);
    cr_assert_eq(bfc_pool_add_apart(pool, 8 * MIB, &apart, &(int){0}), BFC_OK);
}

static void set_up(void) {
    fake_upstream_init(&fake, 64 * MIB);
    bfc_pool_config_default(&config);
}

static void tear_down(void) {
    const char *fault = bfc_pool_check(pool);
    cr_assert_null(fault, "%s", fault);
    bfc_pool_destroy(pool, true);
    cr_assert_eq(fake.taken, 0);
}

static struct bfc_pool_stats stats(void) {
    struct bfc_pool_stats s;
    bfc_pool_read_stats(pool, &s);
    return s;
}

static enum bfc_status place(uint64_t offset, uint64_t bytes, unsigned flags,
                             struct bfc_block_info *block) {
    bfc_addr below[BFC_PLACE_HINTS] = {0};
    enum bfc_status status = bfc_pool_allocate_at(pool, apart + offset, bytes, flags, below, block);
    const char *fault = bfc_pool_check(pool);
    cr_assert_null(fault, "%s", fault);
    return status;
}

static struct bfc_block_info placed(uint64_t offset, uint64_t bytes) {
    struct bfc_block_info block;
    cr_assert_eq(place(offset, bytes, 0, &block), BFC_OK);
    cr_assert_eq(block.start, apart + offset);
    return block;
}

static void give(struct bfc_block_info block, bfc_fence fence) {
    cr_assert_eq(bfc_pool_free(pool, block.start, fence), BFC_OK);
    const char *fault = bfc_pool_check(pool);
    cr_assert_null(fault, "%s", fault);
}

TestSuite(place, .init = set_up, .fini = tear_down);

Test(place, is_just_as_large_as_the_pool_rounds) {
    open_pool();
    cr_assert_eq(placed(0, 100).size, 512);
    cr_assert_eq(placed(64 * KIB, 65 * KIB).size, 65 * KIB);
    cr_assert_eq(placed(512, 1).size, 512);
    cr_assert_eq(stats().hits, 3);
    cr_assert_eq(stats().misses, 0);
}

Test(place, lies_at_either_end_and_in_the_middle) {
    open_pool();
    placed(8 * MIB - 64 * KIB, 64 * KIB);
    placed(4 * MIB, MIB);
    placed(0, MIB);
    placed(MIB, 3 * MIB);
    placed(5 * MIB, 3 * MIB - 64 * KIB);
    cr_assert_eq(stats().ready, 0);
}

Test(place, is_refused_where_something_lives) {
    struct bfc_block_info block = {.id = 0};
    open_pool();
    struct bfc_block_info first = placed(MIB, MIB);
    cr_assert_eq(place(MIB, 512, 0, &block), BFC_OUT_OF_MEMORY);
    cr_assert_eq(place(MIB - 64 * KIB, 2 * MIB, 0, &block), BFC_OUT_OF_MEMORY);
    cr_assert_eq(place(2 * MIB - 512, 512, 0, &block), BFC_OUT_OF_MEMORY);
    cr_assert_eq(block.id, 0);
    give(first, BFC_NO_FENCE);
    placed(MIB - 64 * KIB, 2 * MIB);
}

Test(place, is_refused_where_no_block_may_start_or_end) {
    struct bfc_block_info block;
    open_pool();
    cr_assert_eq(place(0, 0, 0, &block), BFC_INVALID_SIZE);
    cr_assert_eq(place(0, UINT64_MAX, 0, &block), BFC_INVALID_SIZE);
    cr_assert_eq(place(100, 512, 0, &block), BFC_INVALID_POINTER);
    cr_assert_eq(place(512, 64 * KIB, 0, &block), BFC_INVALID_POINTER);
    cr_assert_eq(place(8 * MIB - 512, 1024, 0, &block), BFC_UNKNOWN_POINTER);
    cr_assert_eq(place(8 * MIB, 512, 0, &block), BFC_UNKNOWN_POINTER);
    cr_assert_eq(place(-apart + 512, 512, 0, &block), BFC_UNKNOWN_POINTER);
}

Test(place, waits_for_no_fence) {
    struct bfc_block_info block;
    open_pool();
    give(placed(0, MIB), 7);
    cr_assert_eq(place(0, MIB, 0, &block), BFC_OUT_OF_MEMORY);
    cr_assert_eq(fake.polls, 1);
    cr_assert_eq(place(0, MIB, BFC_ALLOCATE_HIT_ONLY, &block), BFC_OUT_OF_MEMORY);
    cr_assert_eq(fake.polls, 1);
    fake.completed = 7;
    placed(0, MIB);
    cr_assert_eq(fake.waits, 0);
}

Test(place, has_the_highest_of_the_fences_that_lie_in_it) {
    struct bfc_block_info block;
    open_pool();
    struct bfc_block_info parts[3] = {placed(0, MIB), placed(MIB, MIB), placed(2 * MIB, MIB)};
    give(parts[0], 5);
    give(parts[1], 9);
    give(parts[2], 7);
    cr_assert_eq(place(512 * KIB, 2 * MIB, BFC_ALLOCATE_PENDING, &block), BFC_OK);
    cr_assert_eq(block.fence, 9);
    cr_assert_eq(stats().pending, MIB);
    cr_assert_eq(stats().pending_reuses, 1);
    bfc_pool_complete(pool, 9);
    cr_assert_eq(stats().pending, 0);
}

Test(place, is_refused_where_a_block_is_deferred_or_awaited) {
    struct bfc_block_info block;
    open_pool();
    struct bfc_block_info first = placed(0, MIB), second = placed(MIB, MIB);
    give(first, BFC_DEFERRED_FENCE);
    cr_assert_eq(bfc_pool_free_awaited(pool, second.start), BFC_OK);
    cr_assert_eq(place(0, MIB, BFC_ALLOCATE_PENDING, &block), BFC_OUT_OF_MEMORY);
    cr_assert_eq(place(MIB, MIB, BFC_ALLOCATE_PENDING, &block), BFC_OUT_OF_MEMORY);
    bfc_pool_fence_deferred(pool, 1, UINT64_MAX);
    bfc_pool_complete(pool, 1);
    bfc_pool_ready(pool, second.start, BFC_NO_FENCE);
    placed(0, 2 * MIB);
}

static bool is_apart(bfc_addr start) {
    return start >= apart && start < apart + 8 * MIB;
}

Test(place, apart_others_may_take_of_it_instead_of_growing) {
    struct bfc_block_info block;
    open_pool();
    struct bfc_block_info whole = placed(0, 8 * MIB);
    cr_assert_eq(bfc_pool_allocate(pool, MIB, 0, &block), BFC_OK);
    cr_assert_not(is_apart(block.start));
    give(block, BFC_NO_FENCE);
    give(whole, BFC_NO_FENCE);
    cr_assert_eq(bfc_pool_allocate(pool, MIB, BFC_ALLOCATE_APART, &block), BFC_OK);
    cr_assert_not(is_apart(block.start));
    cr_assert_eq(bfc_pool_allocate(pool, 6 * MIB, BFC_ALLOCATE_APART, &block), BFC_OK);
    cr_assert(is_apart(block.start));
    cr_assert_eq(stats().regions, 2);
    placed(6 * MIB, 2 * MIB);
}

Test(place, apart_others_may_take_of_it_first) {
    struct bfc_block_info block;
    open_pool();
    struct bfc_block_info whole = placed(0, 8 * MIB);
    cr_assert_eq(bfc_pool_allocate(pool, MIB, 0, &block), BFC_OK);
    give(block, BFC_NO_FENCE);
    cr_assert_eq(bfc_pool_allocate_apart(pool, MIB, &block), BFC_OUT_OF_MEMORY);
    cr_assert_eq(bfc_pool_allocate_apart(pool, 0, &block), BFC_INVALID_SIZE);
    give(whole, BFC_NO_FENCE);
    uint64_t hits = stats().hits;
    cr_assert_eq(bfc_pool_allocate_apart(pool, MIB, &block), BFC_OK);
    cr_assert(is_apart(block.start));
    cr_assert_eq(stats().hits, hits + 1);
    cr_assert_eq(bfc_pool_allocate_apart(pool, 8 * MIB, &block), BFC_OUT_OF_MEMORY);
    cr_assert_eq(stats().regions, 2);
}

Test(place, apart_nobody_else_takes_what_is_pending) {
    struct bfc_block_info block;
    open_pool();
    give(placed(0, 8 * MIB), 7);
    cr_assert_eq(bfc_pool_allocate(pool, MIB, BFC_ALLOCATE_PENDING | BFC_ALLOCATE_APART, &block),
                 BFC_OK);
    cr_assert_not(is_apart(block.start));
    cr_assert_eq(stats().regions, 2);
}

Test(place, apart_nobody_else_takes_it) {
    struct bfc_block_info block;
    open_pool();
    give(placed(0, MIB), 7);
    cr_assert_eq(bfc_pool_allocate(pool, MIB, BFC_ALLOCATE_PENDING, &block), BFC_OK);
    cr_assert_not(is_apart(block.start));
    cr_assert_eq(stats().regions, 2);
    cr_assert_eq(stats().largest_free, 7 * MIB);
}

Test(place, opened_everybody_takes_it) {
    struct bfc_block_info block;
    open_pool();
    give(placed(0, MIB), 7);
    cr_assert(bfc_pool_set_apart(pool, apart + MIB, false));
    cr_assert_eq(bfc_pool_allocate(pool, 7 * MIB, 0, &block), BFC_OK);
    cr_assert_eq(bfc_pool_allocate(pool, MIB, BFC_ALLOCATE_PENDING, &block), BFC_OK);
    cr_assert_eq(block.fence, 7);
    cr_assert(bfc_pool_set_apart(pool, apart, true));
    cr_assert_eq(stats().regions, 1);
    cr_assert_not(bfc_pool_set_apart(pool, apart - 1, true));
}

Test(place, apart_it_is_no_cause_of_out_of_memory) {
    struct bfc_block_info block;
    config.limit = 10 * MIB;
    open_pool();
    placed(0, MIB);
    cr_assert_eq(bfc_pool_allocate(pool, 6 * MIB, 0, &block), BFC_OK);
    cr_assert_eq(block.start, apart + MIB);
    cr_assert_eq(stats().reserved, 8 * MIB);
    cr_assert_eq(stats().out_of_memory, 0);
    placed(7 * MIB, MIB);
}

/* A region of pytorch's large blocks, or one that it may not split, is one all the same. */
Test(place, apart_no_policy_is_a_cause_of_out_of_memory) {
    struct bfc_block_info block;
    config.policy = BFC_POLICY_PYTORCH;
    config.limit = 8 * MIB;
    config.max_split = 2 * MIB;
    open_pool();
    placed(MIB, 512);
    for (uint64_t bytes = 512; bytes <= 2 * MIB; bytes *= 2)
        cr_assert_eq(bfc_pool_allocate(pool, bytes - 500, 0, &block), BFC_OK, "%llu bytes",
                     (unsigned long long)bytes);
    cr_assert_eq(bfc_pool_allocate(pool, 6 * MIB, 0, &block), BFC_OUT_OF_MEMORY);
}

static bfc_addr taken(uint64_t bytes) {
    struct bfc_block_info block;
    cr_assert_eq(bfc_pool_allocate(pool, bytes, 0, &block), BFC_OK);
    return block.start;
}

static void freed(bfc_addr start) {
    cr_assert_eq(bfc_pool_free(pool, start, BFC_NO_FENCE), BFC_OK);
}

static uint64_t reserved(void) {
    struct bfc_pool_stats stats;
    bfc_pool_read_stats(pool, &stats);
    return stats.reserved;
}

/* What lies beside in pieces gathers in one region of what was wanted at a time. */
Test(place, beside_it_gathers) {
    open_pool();
    placed(0, 8 * MIB);
    bfc_addr first = taken(8 * MIB), second = taken(16 * MIB);
    cr_assert_eq(bfc_pool_gather_overflow(pool), 0);
    freed(first);
    freed(second);
    cr_assert_eq(reserved(), 32 * MIB);
    cr_assert_eq(bfc_pool_gather_overflow(pool), 24 * MIB);
    first = taken(4 * MIB);
    cr_assert_eq(reserved(), 32 * MIB);
    second = taken(16 * MIB);
    freed(first);
    freed(second);
    cr_assert_eq(reserved(), 32 * MIB);
    cr_assert_eq(bfc_pool_gather_overflow(pool), 0);
}

Test(place, beside_what_is_in_use_stays) {
    open_pool();
    placed(MIB, 512);
    bfc_addr first = taken(8 * MIB);
    freed(taken(16 * MIB));
    cr_assert_eq(bfc_pool_gather_overflow(pool), 16 * MIB);
    freed(first);
    freed(taken(8 * MIB));
    cr_assert_eq(reserved(), 16 * MIB);
}

/* Without a region apart there is nothing beside one; nor by a growth that was asked for. */
Test(place, beside_only_a_plan_and_by_double) {
    config.growth = BFC_GROWTH_EXACT;
    open_pool();
    placed(MIB, 512);
    bfc_addr first = taken(8 * MIB);
    freed(taken(16 * MIB));
    freed(first);
    cr_assert_eq(bfc_pool_gather_overflow(pool), 0);
}

Test(place, apart_it_is_within_the_limit_and_goes_back) {
    bfc_addr other = 0;
    config.limit = 10 * MIB;
    open_pool();
    cr_assert_eq(bfc_pool_add_apart(pool, 4 * MIB, &other, &(int){0}), BFC_OUT_OF_MEMORY);
    cr_assert_eq(bfc_pool_add_apart(pool, 100, &other, &(int){0}), BFC_INVALID_SIZE);
    cr_assert_eq(other, 0);
    cr_assert_eq(bfc_pool_trim(pool, UINT64_MAX), 8 * MIB);
    cr_assert_eq(bfc_pool_add_apart(pool, 10 * MIB, &other, &(int){0}), BFC_OK);
}

Test(place, apart_it_is_of_whole_pages) {
    struct bfc_pool_stats stats;
    bfc_addr other = 0;
    config.limit = 15 * MIB;
    open_pool();
    cr_assert_eq(bfc_pool_add_apart(pool, 3 * MIB + 4096, &other, &(int){0}), BFC_OK);
    bfc_pool_read_stats(pool, &stats);
    cr_assert_eq(stats.reserved, 12 * MIB);
    cr_assert_eq(bfc_pool_add_apart(pool, 3 * MIB, &other, &(int){0}), BFC_OK);
    bfc_pool_read_stats(pool, &stats);
    cr_assert_eq(stats.reserved, 15 * MIB);
}

Test(place, apart_under_every_policy) {
    static const enum bfc_policy policies[] = {BFC_POLICY_TF, BFC_POLICY_PYTORCH};
    struct bfc_block_info block;
    config.policy = policies[0];
    open_pool();
    bfc_pool_destroy(pool, true);
    config.policy = policies[1];
    open_pool();
    struct bfc_block_info first = placed(MIB, 3 * MIB);
    cr_assert_eq(bfc_pool_allocate(pool, MIB, 0, &block), BFC_OK);
    cr_assert(block.start < apart || block.start >= apart + 8 * MIB);
    give(first, BFC_NO_FENCE);
    placed(0, 8 * MIB);
}
