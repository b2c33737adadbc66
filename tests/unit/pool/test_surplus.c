/* What the program has outgrown goes back at frees that wait (pool/regions/surplus.c). */
#include <criterion/criterion.h>

#include "tests/unit/pool/fake_upstream.h"

#define MIB (UINT64_C(1) << 20)

static struct fake_upstream fake;
static struct bfc_pool *pool;

static void set_up(void) {
    fake_upstream_init(&fake, 4096 * MIB);
}

static void open_growing(enum bfc_policy policy, enum bfc_growth growth) {
    struct bfc_upstream upstream = fake_upstream_table(&fake);
    struct bfc_pool_config config;
    bfc_pool_config_default(&config);
    config.policy = policy;
    config.growth = growth;
    cr_assert_eq(bfc_pool_create(&pool, &config, &upstream), BFC_OK);
}

static void open_pool(enum bfc_policy policy) {
    open_growing(policy, BFC_GROWTH_EXACT);
}

static void tear_down(void) {
    const char *fault = bfc_pool_check(pool);
    cr_assert_null(fault, "%s", fault);
    bfc_pool_destroy(pool, true);
    cr_assert_eq(fake.taken, 0);
}

TestSuite(surplus, .init = set_up, .fini = tear_down);

static struct bfc_pool_stats stats(void) {
    struct bfc_pool_stats s;
    bfc_pool_read_stats(pool, &s);
    return s;
}

static bfc_addr get(uint64_t bytes) {
    struct bfc_block_info block;
    cr_assert_eq(bfc_pool_allocate(pool, bytes, 0, &block), BFC_OK);
    return block.start;
}

static void give(bfc_addr start) {
    cr_assert_eq(bfc_pool_free(pool, start, BFC_NO_FENCE), BFC_OK);
}

static unsigned surplus_releases;

/* Frees as a caller that waits does. */
static uint64_t give_waiting(bfc_addr start) {
    bool begins = bfc_pool_has_surplus(pool) && bfc_pool_begin_surplus(pool);
    uint64_t went = begins ? bfc_pool_release_surplus(pool, true) : 0;
    surplus_releases += went != 0;
    give(start);
    return went;
}

/* Blocks that grow leave regions behind. Returns how many bytes went at their frees. */
static uint64_t outgrow(unsigned rounds) {
    uint64_t went = 0;
    for (unsigned i = 0; i < rounds; i++) {
        bfc_addr block = get((100 + 4 * i) * MIB);
        for (int small = 0; small < 4; small++)
            went += give_waiting(get(512));
        went += give_waiting(block);
    }
    return went;
}

Test(surplus, goes_back) {
    open_pool(BFC_POLICY_BFC);
    cr_assert_gt(outgrow(10), 0);
    cr_assert_leq(stats().reserved, stats().peak_in_use + stats().peak_in_use / 10 + 32 * MIB +
                                        136 * MIB /* the last growth, until the next free */);
    cr_assert_eq(fake.bad_releases, 0);
}

Test(surplus, is_bounded) {
    open_pool(BFC_POLICY_BFC);
    outgrow(60);
    cr_assert_leq(surplus_releases, 16 + stats().frees / 512);
}

static void give_small(unsigned count) {
    for (unsigned i = 0; i < count; i++)
        give_waiting(get(512));
}

/* A loop that each time takes anew what went back: of its two regions, each is idle in turn, and
 * neither can serve what the other does. */
Test(surplus, ends_in_a_loop) {
    open_pool(BFC_POLICY_BFC);
    for (int i = 0; i < 10000; i++) {
        give_waiting(get(150 * MIB));
        give_small(4);
        bfc_addr one = get(80 * MIB), other = get(80 * MIB);
        give_waiting(one);
        give_waiting(other);
        give_small(4);
    }
    cr_assert_gt(surplus_releases, 16);
    cr_assert_lt(surplus_releases, 60);
}

/* Nor does a free wait again and again for regions that other threads have taken meanwhile. */
Test(surplus, waits_in_vain_end) {
    unsigned begun = 0;
    open_pool(BFC_POLICY_BFC);
    give(get(100 * MIB));
    give(get(150 * MIB));
    for (int i = 0; i < 100000; i++) {
        give(get(512));
        if (bfc_pool_has_surplus(pool) && bfc_pool_begin_surplus(pool)) {
            cr_assert_eq(bfc_pool_release_surplus(pool, false), 0);
            begun++;
        }
    }
    cr_assert_gt(begun, 0);
    cr_assert_lt(begun, 60);
}

/* While one thread waits in order to give regions back, no other need wait for the same. */
Test(surplus, is_for_one_thread) {
    open_pool(BFC_POLICY_BFC);
    give(get(100 * MIB));
    give(get(150 * MIB));
    for (int i = 0; i < 2; i++)
        give(get(512));
    cr_assert(bfc_pool_begin_surplus(pool));
    cr_assert_not(bfc_pool_begin_surplus(pool));
    cr_assert_gt(bfc_pool_release_surplus(pool, true), 0);
}

Test(surplus, refused_is_kept) {
    open_pool(BFC_POLICY_BFC);
    fake.refuse_release = 1000;
    cr_assert_eq(outgrow(10), 0);
    cr_assert_eq(stats().reserved, fake.taken);
    fake.refuse_release = 0;
}

static bool is_there(bfc_addr start) {
    struct bfc_block_info block;
    return bfc_pool_find(pool, start, &block) && block.region_start == start;
}

/* A plan's memory is idle until the plan's next block, and is no surplus. */
Test(surplus, plan_is_kept) {
    bfc_addr planned;
    open_pool(BFC_POLICY_BFC);
    cr_assert_eq(bfc_pool_add_apart(pool, 500 * MIB, &planned, &(int){0}), BFC_OK);
    cr_assert_gt(outgrow(10), 0);
    cr_assert(is_there(planned));
    cr_assert(bfc_pool_set_apart(pool, planned, false));
    bfc_pool_trim(pool, UINT64_MAX);
    cr_assert_not(is_there(planned));
}

Test(surplus, is_of_policy_bfc) {
    open_pool(BFC_POLICY_PYTORCH);
    cr_assert_eq(outgrow(10), 0);
    cr_assert_eq(stats().release_calls, 0);
}

/* ---- merging ---- */

/* A loop's period: blocks of which each needs a region, freed together, and small ones. Returns how
 * many bytes went at the frees. */
static uint64_t run_period(unsigned sizes) {
    bfc_addr blocks[8];
    uint64_t went = 0;
    for (unsigned i = 0; i < 8; i++)
        blocks[i] = get((40 + (i * 7 + sizes * 13) % 30) * MIB);
    for (int i = 7; i >= 0; i--)
        went += give_waiting(blocks[i]);
    for (int i = 0; i < 4; i++)
        went += give_waiting(get(512));
    return went;
}

Test(surplus, merges_idle_regions) {
    open_growing(BFC_POLICY_BFC, BFC_GROWTH_DOUBLE);
    bfc_addr stays = get(512);
    cr_assert_gt(run_period(0), 100 * MIB);
    for (unsigned i = 1; i < 10; i++)
        run_period(i);
    cr_assert_leq(stats().peak_reserved, stats().peak_in_use / 4 * 5);
    cr_assert_leq(stats().reserve_calls + stats().release_calls, 40);
    give(stays);
}

/* A loop whose sizes repeat soon asks for nothing. */
Test(surplus, merging_ends) {
    open_growing(BFC_POLICY_BFC, BFC_GROWTH_DOUBLE);
    for (int i = 0; i < 3; i++)
        run_period(0);
    uint64_t calls = stats().reserve_calls + stats().release_calls;
    for (int i = 0; i < 3; i++)
        cr_assert_eq(run_period(0), 0);
    cr_assert_eq(stats().reserve_calls + stats().release_calls, calls);
}

Test(surplus, merges_nothing_where_memory_is_short) {
    open_growing(BFC_POLICY_BFC, BFC_GROWTH_DOUBLE);
    struct bfc_block_info block;
    cr_assert_neq(bfc_pool_allocate(pool, 5000 * MIB, 0, &block), BFC_OK);
    cr_assert_eq(run_period(0), 0);
}

Test(surplus, merges_nothing_once_others_want_memory) {
    open_growing(BFC_POLICY_BFC, BFC_GROWTH_DOUBLE);
    bfc_pool_trim(pool, 1);
    cr_assert_eq(run_period(0), 0);
}

Test(surplus, merges_nothing_if_each_block_has_a_region) {
    open_growing(BFC_POLICY_BFC, BFC_GROWTH_EXACT);
    cr_assert_eq(run_period(0), 0);
}
