/*
 * Every call of the upstream fails, refuses or stalls once, and the host runs out of memory: the
 * pool answers with the right status, its checker stays content, and it works again afterwards.
 */
#include <criterion/criterion.h>

#include "pool/blocks/pool_state.h"
#include "pool/calls/create.h"
#include "tests/unit/pool/fake_upstream.h"

static struct fake_upstream fake;
static struct bfc_pool *pool;

static void open_with(uint64_t blocks, struct bfc_pool_config *config) {
    struct bfc_upstream upstream = fake_upstream_table(&fake);
    cr_assert_eq(create_sized(&pool, config, &upstream, blocks), BFC_OK);
}

static struct bfc_pool_config set_up(uint64_t capacity) {
    struct bfc_pool_config config;
    fake_upstream_init(&fake, capacity);
    bfc_pool_config_default(&config);
    return config;
}

static void close_pool(void) {
    const char *fault = bfc_pool_check(pool);
    cr_assert_null(fault, "%s", fault);
    bfc_pool_destroy(pool, true);
    cr_assert_eq(fake.taken, 0);
}

/* A round of work that uses the upstream in all its ways; fails only as it may. */
static void work(void) {
    struct bfc_block_info b[16];
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 16; i++) {
            enum bfc_status status = bfc_pool_allocate(pool, (uint64_t)(i + 1) * 300000, 0, &b[i]);
            cr_assert(status == BFC_OK || status == BFC_OUT_OF_MEMORY ||
                      status == BFC_UPSTREAM_FAILED);
            if (status != BFC_OK)
                b[i].start = 0;
            cr_assert_null(bfc_pool_check(pool));
        }
        for (int i = 0; i < 16; i++)
            if (b[i].start)
                cr_assert_eq(bfc_pool_free(pool, b[i].start, (bfc_fence)(round * 16 + i)), BFC_OK);
        cr_assert_null(bfc_pool_check(pool));
    }
    bfc_pool_complete(pool, UINT64_MAX);
}

Test(faults, each_reserve_fails_once) {
    for (unsigned n = 1; n <= 12; n++) {
        struct bfc_pool_config config = set_up(64 * MIB);
        config.growth = BFC_GROWTH_EXACT;
        open_with(1 << 16, &config);
        fake.fail_reserve = n;
        work();
        work();
        close_pool();
    }
}

Test(faults, each_reserve_is_refused_once) {
    for (unsigned n = 1; n <= 12; n++) {
        struct bfc_pool_config config = set_up(24 * MIB);
        config.pending_budget = n % 2 ? 0 : MIB;
        open_with(1 << 16, &config);
        fake.refuse_reserve = n * 3;
        work();
        fake.refuse_reserve = n;
        work();
        close_pool();
    }
}

Test(faults, waits_that_never_end_well) {
    for (bfc_fence reachable = 0; reachable <= 64; reachable += 8) {
        struct bfc_pool_config config = set_up(12 * MIB);
        config.pending_budget = 0;
        open_with(1 << 16, &config);
        fake.reachable = reachable;
        work();
        fake.reachable = UINT64_MAX;
        work();
        close_pool();
    }
}

Test(faults, upstream_without_optional_functions) {
    struct bfc_pool_config config = set_up(12 * MIB);
    struct bfc_upstream upstream = fake_upstream_table(&fake);
    upstream.wait = NULL;
    upstream.poll = NULL;
    upstream.now = NULL;
    cr_assert_eq(bfc_pool_create(&pool, &config, &upstream), BFC_OK);
    work();
    close_pool();
}

/* With few records: blocks cannot be split any more, and later regions cannot be taken in. */
Test(faults, host_memory_runs_out) {
    struct bfc_pool_config config = set_up(GIB);
    open_with(1, &config);
    struct bfc_block_info b;
    enum bfc_status status = BFC_OK;
    unsigned count = 0;
    for (; status == BFC_OK && count < 1000000; count++)
        status = bfc_pool_allocate(pool, 1, 0, &b);
    cr_assert_eq(status, BFC_NO_HOST_MEMORY);
    cr_assert_null(bfc_pool_check(pool));
    cr_assert_eq(bfc_pool_free(pool, fake.regions[0].start, BFC_NO_FENCE), BFC_OK);
    cr_assert_eq(bfc_pool_allocate(pool, 1, 0, &b), BFC_OK);
    close_pool();
}

/* The largest region: 2 TiB. */
static void take_largest(enum bfc_policy policy) {
    const uint64_t largest = 2048 * GIB;
    struct bfc_pool_config config = set_up(UINT64_MAX / 2);
    config.growth = BFC_GROWTH_EXACT;
    config.policy = policy;
    open_with(1 << 16, &config);
    struct bfc_block_info b;
    cr_assert_eq(bfc_pool_allocate(pool, largest, 0, &b), BFC_OK);
    cr_assert_eq(b.size, largest);
    cr_assert_eq(bfc_pool_allocate(pool, largest + 1, 0, &b), BFC_OUT_OF_MEMORY);
    cr_assert_eq(bfc_pool_free(pool, b.start, BFC_NO_FENCE), BFC_OK);
    cr_assert_eq(bfc_pool_allocate(pool, 512, 0, &b), BFC_OK);
    close_pool();
}

Test(faults, regions_of_tebibytes) {
    take_largest(BFC_POLICY_BFC);
    take_largest(BFC_POLICY_TF);
}

/* 100,000 blocks and back: the records' memory follows, and looking up works throughout. */
Test(faults, records_move_together) {
    enum { MANY = 100000 };
    static bfc_addr at[MANY];
    struct bfc_pool_config config = set_up(GIB);
    open_with(1 << 20, &config);
    struct bfc_block_info b;
    for (unsigned i = 0; i < MANY; i++) {
        cr_assert_eq(bfc_pool_allocate(pool, 512 * (1 + i % 7), 0, &b), BFC_OK);
        at[i] = b.start;
    }
    cr_assert_null(bfc_pool_check(pool));
    for (unsigned step = 0; step < 10; step++) {
        for (unsigned i = step; i < MANY; i += 10) {
            cr_assert(bfc_pool_find(pool, at[i] + 511, &b));
            cr_assert_eq(b.start, at[i]);
            bfc_fence fence = i % 1000 ? BFC_NO_FENCE : 1 + i; /* some records have a detail */
            cr_assert_eq(bfc_pool_free(pool, at[i], fence), BFC_OK);
        }
        cr_assert_null(bfc_pool_check(pool));
    }
    for (unsigned i = 0; i < MANY; i += 1000)
        cr_assert(bfc_pool_find(pool, at[i], &b) && !b.live && b.fence == 1 + i);
    cr_assert_lt(pool->high, 8192);
    cr_assert_leq(pool->map.bucket_count, MAP_FEWEST_KEPT);
    close_pool();
}
