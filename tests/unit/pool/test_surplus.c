/* What the program has outgrown goes back at frees that wait (pool/regions/surplus.c). */
#include <criterion/criterion.h>

#include "tests/unit/pool/fake_upstream.h"

#define MIB (UINT64_C(1) << 20)

static struct fake_upstream fake;
static struct bfc_pool *pool;

static void set_up(void) {
    fake_upstream_init(&fake, 4096 * MIB);
}

static void open_pool(enum bfc_policy policy) {
    struct bfc_upstream upstream = fake_upstream_table(&fake);
    struct bfc_pool_config config;
    bfc_pool_config_default(&config);
    config.policy = policy;
    config.growth = BFC_GROWTH_EXACT;
    cr_assert_eq(bfc_pool_create(&pool, &config, &upstream), BFC_OK);
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
    uint64_t went = bfc_pool_glimpse(pool, start).surplus ? bfc_pool_release_surplus(pool) : 0;
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

Test(surplus, refused_is_kept) {
    open_pool(BFC_POLICY_BFC);
    fake.refuse_release = 1000;
    cr_assert_eq(outgrow(10), 0);
    cr_assert_eq(stats().reserved, fake.taken);
    fake.refuse_release = 0;
}

Test(surplus, is_of_policy_bfc) {
    open_pool(BFC_POLICY_PYTORCH);
    cr_assert_eq(outgrow(10), 0);
    cr_assert_eq(stats().release_calls, 0);
}
