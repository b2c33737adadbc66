/*
 * The behaviours that the tests of TensorFlow's and PyTorch's allocators check, checked here; and
 * each rung of what is tried when the device is full.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/pool/fake_upstream.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

static struct fake_upstream fake;
static struct bfc_pool *pool;
static struct bfc_pool_config config;

static void set_up(void) {
    fake_upstream_init(&fake, 4096 * MIB);
    bfc_pool_config_default(&config);
}

static void open_pool(enum bfc_policy policy) {
    struct bfc_upstream upstream = fake_upstream_table(&fake);
    config.policy = policy;
    cr_assert_eq(bfc_pool_create(&pool, &config, &upstream), BFC_OK);
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

static bfc_addr get(uint64_t bytes) {
    struct bfc_block_info block;
    cr_assert_eq(bfc_pool_allocate(pool, bytes, 0, &block), BFC_OK, "%llu",
                 (unsigned long long)bytes);
    return block.start;
}

static bool fails(uint64_t bytes) {
    struct bfc_block_info block;
    return bfc_pool_allocate(pool, bytes, 0, &block) == BFC_OUT_OF_MEMORY;
}

static void give(bfc_addr start) {
    cr_assert_eq(bfc_pool_free(pool, start, BFC_NO_FENCE), BFC_OK);
}

static int by_address(const void *a, const void *b) {
    bfc_addr x = *(const bfc_addr *)a, y = *(const bfc_addr *)b;
    return (x > y) - (x < y);
}

/* Small ones between large ones, split, merged and taken again. */
static void take_and_give(enum bfc_policy policy) {
    static const uint64_t sizes[] = {300, 65536, 100, 100000, 1, 3 << 20, 513, 64 << 10, 200 << 10};
    enum { SIZES = sizeof sizes / sizeof *sizes, ROUNDS = 50 };
    bfc_addr blocks[SIZES] = {0};
    open_pool(policy);
    for (int i = 0; i < ROUNDS * SIZES; i++) {
        int which = i * 7 % SIZES;
        uint64_t size = sizes[(i + i / SIZES) % SIZES];
        if (blocks[which])
            give(blocks[which]);
        blocks[which] = get(size);
        cr_assert_eq(blocks[which] % (size >> 20 || size % 65536 == 0 ? 65536 : 512), 0, "%d", i);
    }
}

TestSuite(policy, .init = set_up, .fini = tear_down);

/* Textures need multiples of 512 bytes, an exported dma-buf whole pages of the host, up to 64 KiB.
 * The driver, too, puts blocks below 1 MiB that are not whole pages at multiples of 512. */
Test(policy, bfc_aligns_as_the_driver_does_and_large_blocks_to_pages) {
    take_and_give(BFC_POLICY_BFC);
}

Test(policy, tf_does_too) {
    take_and_give(BFC_POLICY_TF);
}

Test(policy, pytorch_does_too) {
    take_and_give(BFC_POLICY_PYTORCH);
}

Test(policy, bfc_pads_blocks_below_1_mib_to_512_bytes_and_larger_ones_to_64_kib) {
    open_pool(BFC_POLICY_BFC);
    get(MIB - 700);
    get(MIB + 1);
    cr_assert_eq(stats().in_use, MIB - 512 + MIB + 64 * KIB);
}

Test(policy, bfc_takes_room_for_up_to_four_requests_but_a_fifth_of_what_is_reserved_at_most) {
    open_pool(BFC_POLICY_BFC);
    get(400 * MIB);
    get(22 * MIB);
    get(200 * MIB);
    cr_assert_eq(stats().reserved, (400 + 3 * 22 + 200) * MIB);
}

Test(policy, tf_sizes_from_1_to_1023) {
    static bfc_addr blocks[1024], sorted[1024];
    open_pool(BFC_POLICY_TF);
    for (uint64_t size = 1; size < 1024; size++)
        blocks[size] = sorted[size] = get(size);
    qsort(sorted + 1, 1023, sizeof *sorted, by_address);
    for (int i = 2; i < 1024; i++) {
        struct bfc_block_info below;
        cr_assert(bfc_pool_find(pool, sorted[i - 1], &below));
        cr_assert_geq(sorted[i], below.start + below.size);
    }
    /* Its own granule is 256, by which it would be 654,336. */
    cr_assert_eq(stats().in_use, 512 * 512 + 511 * 1024);
    cr_assert_eq(stats().peak_in_use, 512 * 512 + 511 * 1024);
    for (int i = 1; i < 1024; i++)
        give(blocks[i]);
    cr_assert_eq(stats().in_use, 0);
}

Test(policy, tf_coalesces_back_to_the_first_address) {
    open_pool(BFC_POLICY_TF);
    bfc_addr first = 0;
    for (int round = 0; round < 1024; round++) {
        bfc_addr a = get(4 * KIB), b = get(8 * MIB), c = get(16 * KIB), d = get(40 * MIB);
        if (round == 0)
            first = a;
        cr_assert_eq(a, first);
        give(a);
        give(b);
        give(c);
        give(d);
    }
}

Test(policy, an_over_limit_request_fails_harmlessly) {
    static bfc_addr blocks[510];
    config.limit = 1024 * MIB;
    open_pool(BFC_POLICY_TF);
    srand(1);
    for (int i = 0; i < 255; i++)
        blocks[i] = get(100 + (uint64_t)rand() % MIB);
    for (int i = 1; i < 255; i += 2)
        give(blocks[i]);
    cr_assert(fails(1025 * MIB));
    for (int i = 255; i < 510; i++)
        blocks[i] = get(100 + (uint64_t)rand() % MIB);
    cr_assert_null(bfc_pool_check(pool));
}

/* Its step doubles with each region, and must not come to 0; nor to the whole device, where a small
 * block then keeps a large region from others, as long as regions go back. */
Test(policy, tf_takes_regions_without_end) {
    open_pool(BFC_POLICY_TF);
    for (int regions = 0; regions < 200; regions++) {
        bfc_addr block = get(2 * MIB);
        cr_assert_leq(stats().reserved, 4 * MIB);
        give(block);
        cr_assert_gt(bfc_pool_trim(pool, UINT64_MAX), 0);
    }
}

Test(policy, tf_gives_back_all_idle_regions) {
    static bfc_addr blocks[128];
    config.growth_size = 4 * MIB;
    config.growth = BFC_GROWTH_EXACT;
    config.limit = 128 * 4 * MIB;
    open_pool(BFC_POLICY_TF);
    for (int i = 0; i < 128; i++)
        blocks[i] = get(4 * MIB);
    for (int i = 0; i < 127; i++)
        give(blocks[i]);
    get(8 * MIB);
    cr_assert_eq(stats().regions, 2);
    give(blocks[127]);
    cr_assert_eq(stats().ready, 4 * MIB);
}

Test(policy, shuffles) {
    static bfc_addr blocks[350];
    srand(2);
    for (int policy = BFC_POLICY_BFC; policy <= BFC_POLICY_PYTORCH; policy++) {
        if (policy)
            bfc_pool_destroy(pool, true);
        open_pool((enum bfc_policy)policy);
        for (int round = 0; round < 20; round++) {
            for (int i = 0; i < 350; i++)
                blocks[i] = get(1 + (uint64_t)rand() % (4 * MIB));
            for (int i = 349; i >= 0; i--) {
                int other = rand() % (i + 1);
                give(blocks[other]);
                blocks[other] = blocks[i];
            }
            cr_assert_eq(stats().in_use, 0);
        }
        cr_assert_null(bfc_pool_check(pool));
    }
}

Test(policy, a_device_that_always_refuses) {
    fake.capacity = 0;
    for (int policy = BFC_POLICY_BFC; policy <= BFC_POLICY_PYTORCH; policy++) {
        if (policy)
            bfc_pool_destroy(pool, true);
        open_pool((enum bfc_policy)policy);
        cr_assert(fails(1));
        cr_assert(fails(2304));
        cr_assert(fails(100 * MIB));
    }
}

Test(policy, two_halves_of_memory) {
    fake.capacity = 1000 * MIB;
    for (int policy = BFC_POLICY_BFC; policy <= BFC_POLICY_PYTORCH; policy++) {
        if (policy)
            bfc_pool_destroy(pool, true);
        open_pool((enum bfc_policy)policy);
        bfc_addr half = get(520 * MIB);
        cr_assert(fails(520 * MIB));
        give(half);
        get(540 * MIB);
    }
}

Test(policy, pytorch_fraction) {
    config.limit = 1000 * MIB / 2 / 512 * 512;
    open_pool(BFC_POLICY_PYTORCH);
    bfc_addr fits = get(499 * MIB);
    give(fits);
    cr_assert(fails(501 * MIB));
}

Test(policy, pytorch_max_split_in_120_mib) {
    config.limit = 120 * MIB;
    config.max_split = 40 * MIB;
    open_pool(BFC_POLICY_PYTORCH);
    bfc_addr a = get(40 * MIB), b = get(40 * MIB), c = get(40 * MIB);
    cr_assert(fails(40 * MIB));
    give(a);
    give(b);
    give(c);
    bfc_addr d = get(60 * MIB - 1); /* two large blocks go, for one */
    cr_assert_leq(stats().reserved, 120 * MIB);
    give(d);
    get(40 * MIB);
}

Test(policy, pytorch_small_and_large_apart) {
    open_pool(BFC_POLICY_PYTORCH);
    bfc_addr small = get(512), large = get(2 * MIB);
    cr_assert_eq(stats().reserved, 22 * MIB);
    give(large);
    get(MIB);
    cr_assert_eq(stats().reserved, 22 * MIB);
    give(small);
}

Test(policy, gc_gives_back_what_nobody_wanted) {
    config.limit = 100 * MIB;
    config.gc_threshold = 50 * MIB;
    config.growth = BFC_GROWTH_EXACT;
    open_pool(BFC_POLICY_PYTORCH);
    bfc_addr old = get(30 * MIB);
    give(old);
    bfc_addr young = get(31 * MIB);
    give(young);
    get(32 * MIB); /* 61 of 100 MiB are reserved: the older idle region goes */
    cr_assert_eq(stats().release_calls, 1);
    cr_assert_eq(stats().reserved, 63 * MIB);
}

Test(policy, random_steps_keep_contents) {
    enum { MOST = 128 };
    static struct {
        bfc_addr start;
        uint64_t bytes;
    } live[MOST];
    int count = 0;
    srand(3);
    open_pool(BFC_POLICY_PYTORCH);
    for (int i = 0; i < 10000; i++) {
        int step = rand() % 21;
        if (step == 20)
            bfc_pool_trim(pool, UINT64_MAX);
        else if (step < 10 && count < MOST) {
            live[count].bytes = (2 + (uint64_t)rand() % 19) * MIB;
            live[count].start = get(live[count].bytes);
            count++;
        } else if (count) {
            int which = rand() % count;
            struct bfc_block_info found;
            cr_assert(bfc_pool_find(pool, live[which].start, &found));
            cr_assert(found.live && found.requested == live[which].bytes);
            give(live[which].start);
            live[which] = live[--count];
        }
    }
}

/* ---- when the device is full: each rung, and no further ---- */

static void fill_device(enum bfc_policy policy, uint64_t mib) {
    fake.capacity = mib * MIB;
    config.growth = BFC_GROWTH_EXACT;
    open_pool(policy);
}

Test(policy, rung_1_waits_for_what_suffices) {
    fill_device(BFC_POLICY_BFC, 4);
    bfc_addr a = get(2 * MIB), b = get(2 * MIB);
    bfc_pool_free(pool, a, 1);
    bfc_pool_free(pool, b, 2);
    cr_assert_eq(get(2 * MIB), a);
    cr_assert_eq(fake.completed, 1, "the younger fence is not waited for");
    cr_assert_eq(fake.releases, 0);
    cr_assert_eq(stats().retries, 1);
}

/* ---- what does not go, and what goes meanwhile ---- */

Test(policy, a_region_that_does_not_go_stays) {
    fill_device(BFC_POLICY_BFC, 8);
    bfc_addr a = get(4 * MIB), b = get(4 * MIB);
    give(a);
    fake.refuse_release = 1;
    cr_assert_eq(bfc_pool_trim(pool, UINT64_MAX), 0);
    cr_assert_null(bfc_pool_check(pool));
    cr_assert_eq(stats().reserved, 8 * MIB);
    cr_assert_eq(get(4 * MIB), a, "it is ready, as it was");
    give(b);
    cr_assert_eq(bfc_pool_trim(pool, UINT64_MAX), 4 * MIB);
}

Test(policy, a_used_region_that_does_not_go_is_deferred) {
    struct bfc_block_info block;
    fill_device(BFC_POLICY_BFC, 4);
    bfc_addr a = get(4 * MIB);
    bfc_pool_free(pool, a, 1);
    fake.refuse_release = 1;
    cr_assert_eq(bfc_pool_trim_used(pool, UINT64_MAX), 0);
    cr_assert_null(bfc_pool_check(pool));
    cr_assert_eq(stats().deferred, 4 * MIB);
    cr_assert_eq(bfc_pool_allocate(pool, 4 * MIB, BFC_ALLOCATE_HIT_ONLY, &block), BFC_OUT_OF_MEMORY,
                 "nothing has waited for its work");
    bfc_pool_fence_deferred(pool, 2, UINT64_MAX);
    bfc_pool_complete(pool, 2);
    cr_assert_eq(get(4 * MIB), a);
}

/* Of which waits give memory back, as those of a context with peers do. */
static bfc_fence trim_in_wait(void *context, bfc_fence fence, uint64_t timeout_ns) {
    (void)context, (void)fence, (void)timeout_ns;
    bfc_pool_trim_used(pool, UINT64_MAX);
    return BFC_NO_FENCE;
}

Test(policy, grows_by_what_a_wait_gave_back) {
    static const enum bfc_policy policies[] = {BFC_POLICY_BFC, BFC_POLICY_TF, BFC_POLICY_PYTORCH};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        struct bfc_upstream upstream = fake_upstream_table(&fake);
        fake.capacity = 8 * MIB;
        config.growth = BFC_GROWTH_EXACT;
        config.policy = policies[i];
        upstream.wait = trim_in_wait;
        if (pool)
            bfc_pool_destroy(pool, true);
        cr_assert_eq(bfc_pool_create(&pool, &config, &upstream), BFC_OK);
        bfc_addr a = get(4 * MIB), b = get(4 * MIB);
        bfc_pool_free(pool, a, BFC_DEFERRED_FENCE);
        bfc_pool_free(pool, b, BFC_DEFERRED_FENCE);
        give(get(8 * MIB));
    }
}

Test(policy, rung_2_gives_back_only_what_is_needed) {
    fill_device(BFC_POLICY_BFC, 8);
    bfc_addr a = get(2 * MIB), b = get(2 * MIB), c = get(4 * MIB);
    give(a);
    give(b);
    get(3 * MIB);
    cr_assert_eq(fake.releases, 2);
    give(c);
    cr_assert_eq(stats().retries, 1);
}

Test(policy, rung_3_waits_for_all_to_empty_regions) {
    fill_device(BFC_POLICY_BFC, 8);
    bfc_addr a = get(4 * MIB), b = get(4 * MIB);
    bfc_pool_free(pool, a, 1);
    bfc_pool_free(pool, b, 2);
    get(6 * MIB); /* no run of blocks is so long: only other regions help */
    cr_assert_eq(fake.completed, 2);
    cr_assert_eq(fake.releases, 2);
}

Test(policy, preallocates_at_the_first_allocation_once) {
    config.growth = BFC_GROWTH_PREALLOCATE;
    config.preallocate = 512 * MIB;
    open_pool(BFC_POLICY_BFC);
    cr_assert_eq(fake.reserves, 0);
    get(1);
    cr_assert_eq(stats().reserved, 512 * MIB);
    get(500 * MIB);
    cr_assert_eq(fake.reserves, 1);
    get(500 * MIB);
    cr_assert_eq(stats().reserved, 1012 * MIB);
}

Test(policy, preallocate_backs_off) {
    config.growth = BFC_GROWTH_PREALLOCATE;
    config.preallocate = 8192 * MIB;
    open_pool(BFC_POLICY_BFC);
    get(1);
    cr_assert_geq(stats().reserved, 4096 * MIB / 10 * 9);
}

Test(policy, a_request_above_the_step_gets_its_own_size) {
    open_pool(BFC_POLICY_BFC);
    get(100 * MIB);
    cr_assert_eq(stats().reserved, 100 * MIB);
}

Test(policy, split_ratio_and_slack) {
    config.growth = BFC_GROWTH_EXACT;
    config.split_ratio = 2;
    config.split_slack = 64 * MIB;
    open_pool(BFC_POLICY_BFC);
    bfc_addr a = get(100 * MIB);
    give(a);
    get(60 * MIB); /* 100 is not twice 60, and 40 is below the slack */
    cr_assert_eq(stats().in_use, 100 * MIB);
    bfc_addr b = get(200 * MIB);
    give(b);
    get(130 * MIB);
    cr_assert_eq(stats().in_use, 230 * MIB);
}

Test(policy, roundup) {
    config.roundup = 4;
    open_pool(BFC_POLICY_BFC);
    get(5 * MIB - 3);
    cr_assert_eq(stats().in_use, 5 * MIB);
    get(5 * MIB + 1);
    cr_assert_eq(stats().in_use, 11 * MIB);
    get(8 * MIB);
    cr_assert_eq(stats().in_use, 19 * MIB);
}

Test(policy, idle_regions_go_back_by_the_clock) {
    config.track_idle = true;
    config.growth = BFC_GROWTH_EXACT;
    open_pool(BFC_POLICY_BFC);
    fake.clock = 1000;
    bfc_addr a = get(2 * MIB), b = get(4 * MIB);
    give(a);
    cr_assert_eq(bfc_pool_trim_idle(pool, 100), 0);
    fake.clock += 99;
    cr_assert_eq(bfc_pool_trim_idle(pool, 100), 0);
    fake.clock += 1;
    cr_assert_eq(bfc_pool_trim_idle(pool, 100), 2 * MIB);
    give(b);
    cr_assert_eq(bfc_pool_trim_idle(pool, 100), 0);
    fake.clock += 60;
    give(get(4 * MIB)); /* used meanwhile */
    cr_assert_eq(bfc_pool_trim_idle(pool, 100), 0);
    fake.clock += 60;
    cr_assert_eq(bfc_pool_trim_idle(pool, 100), 0);
    fake.clock += 40;
    cr_assert_eq(bfc_pool_trim_idle(pool, 100), 4 * MIB);
}

/* Beside each pending block lies a ready one that is long enough, but too large to be cut: no fence
 * that could be waited for changes that, and the regions have to go back first. */
Test(policy, what_max_split_refuses_is_not_waited_for) {
    fake.capacity = 40 * MIB;
    config.max_split = 4 * MIB;
    open_pool(BFC_POLICY_PYTORCH);
    bfc_addr first = get(2 * MIB), second = get(2 * MIB);
    cr_assert_eq(bfc_pool_free(pool, first, 1), BFC_OK);
    cr_assert_eq(bfc_pool_free(pool, second, 2), BFC_OK);
    give(get(3 * MIB));
    cr_expect_eq(stats().release_calls, 2);
}

/* ---- large regions that are wholly free ---- */

static uint64_t free_for_others(void) {
    bfc_pool_trim(pool, UINT64_MAX);
    return fake.capacity - fake.taken;
}

static void keep_a_small_block(enum bfc_policy policy, enum bfc_growth growth) {
    config.growth = growth;
    config.preallocate = 64 * MIB;
    open_pool(policy);
    bfc_addr large = get(1024 * MIB);
    give(large);
    get(4 * MIB);
    cr_expect_geq(free_for_others(), 4096 * MIB - 64 * MIB, "policy %d, growth %d", policy, growth);
}

Test(policy, a_small_block_does_not_pin_a_large_region) {
    for (int policy = BFC_POLICY_BFC; policy <= BFC_POLICY_PYTORCH; policy++)
        for (int growth = BFC_GROWTH_DOUBLE; growth <= BFC_GROWTH_PREALLOCATE; growth++) {
            keep_a_small_block((enum bfc_policy)policy, (enum bfc_growth)growth);
            tear_down();
            set_up();
        }
    open_pool(BFC_POLICY_BFC);
}

Test(policy, a_large_region_serves_what_needs_much_of_it) {
    open_pool(BFC_POLICY_BFC);
    bfc_addr large = get(512 * MIB);
    give(large);
    cr_expect_eq(get(128 * MIB), large);
    cr_expect_eq(stats().reserved, 512 * MIB);
}

Test(policy, a_large_region_serves_a_small_block_where_the_pool_cannot_grow) {
    config.limit = 512 * MIB;
    open_pool(BFC_POLICY_BFC);
    bfc_addr large = get(512 * MIB);
    give(large);
    cr_expect_eq(get(MIB), large);
    give(large);
    fake.capacity = fake.taken;
    cr_expect_eq(get(MIB), large);
}

Test(policy, a_region_that_was_preallocated_serves_all) {
    config.growth = BFC_GROWTH_PREALLOCATE;
    open_pool(BFC_POLICY_BFC);
    bfc_addr first = get(MIB);
    give(first);
    cr_expect_eq(get(MIB), first);
    cr_expect_eq(stats().regions, 1);
}

Test(policy, large_regions_are_kept_at_little_cost_until_others_want_memory) {
    open_pool(BFC_POLICY_BFC);
    bfc_addr live = get(768 * MIB), large = get(256 * MIB);
    give(large);
    cr_expect_eq(get(MIB), large); /* 32 MiB more were too much to keep 256 */
    give(large);
    bfc_pool_trim(pool, MIB);
    give(live);
    live = get(768 * MIB);
    large = get(256 * MIB);
    give(large);
    get(MIB);
    cr_expect_eq(free_for_others(), 4096 * MIB - 768 * MIB - 32 * MIB);
}

Test(policy, a_region_taken_to_keep_another_whole_is_no_larger_than_growth_max) {
    config.growth_max = 3 * MIB;
    open_pool(BFC_POLICY_BFC);
    give(get(1024 * MIB));
    get(KIB);
    give(get(4 * MIB)); /* a larger request gets a larger one */
    cr_expect_eq(stats().reserved, (1024 + 3 + 4) * MIB);
}

static void give_eight_regions(bfc_addr at[8], uint64_t size) {
    for (int i = 0; i < 8; i++)
        at[i] = get(size);
    for (int i = 0; i < 8; i++)
        give(at[i]);
}

Test(policy, a_region_is_not_kept_for_a_step_of_more_than_an_eighth_of_it) {
    bfc_addr at[8];
    config.growth = BFC_GROWTH_FIXED;
    config.growth_size = 32 * MIB;
    open_pool(BFC_POLICY_BFC);
    give_eight_regions(at, 128 * MIB);
    get(MIB);
    cr_expect_eq(stats().reserved, 1024 * MIB);
}

Test(policy, a_pool_in_use_keeps_only_a_region_of_a_quarter) {
    bfc_addr at[8];
    config.growth = BFC_GROWTH_EXACT;
    open_pool(BFC_POLICY_BFC);
    bfc_addr live = get(128 * MIB);
    give_eight_regions(at, 128 * MIB);
    get(MIB);
    cr_expect_eq(stats().reserved, 1152 * MIB);
    give(live);
}

Test(policy, a_device_that_has_refused_a_region_has_no_room_to_keep_others_whole) {
    fake.capacity = 1024 * MIB;
    open_pool(BFC_POLICY_BFC);
    bfc_addr large = get(512 * MIB), other = get(256 * MIB);
    struct bfc_block_info info;
    cr_assert_eq(bfc_pool_allocate(pool, 512 * MIB, 0, &info), BFC_OUT_OF_MEMORY);
    give(large);
    give(other);
    get(MIB);
    cr_expect_eq(stats().reserved, 768 * MIB);
}

static bfc_addr get_pending(uint64_t bytes) {
    struct bfc_block_info block;
    cr_assert_eq(bfc_pool_allocate(pool, bytes, BFC_ALLOCATE_PENDING, &block), BFC_OK);
    return block.start;
}

static void open_reusing(void) {
    config.reuse_pending = true;
    open_pool(BFC_POLICY_BFC);
}

/* A region of 1 GiB, all of it pending in this many blocks, each with a fence of its own. */
static bfc_addr give_pending_region(int blocks) {
    bfc_addr at[64], start = get(1024 * MIB);
    give(start);
    bfc_addr half = get(512 * MIB); /* opens the region for smaller blocks */
    for (int i = 0; i < blocks / 2; i++)
        at[i] = get(1024 * MIB / (uint64_t)blocks);
    give(half);
    for (int i = blocks / 2; i < blocks; i++)
        at[i] = get(1024 * MIB / (uint64_t)blocks);
    cr_assert_eq(stats().reserved, 1024 * MIB);
    for (int i = 0; i < blocks; i++)
        cr_assert_eq(bfc_pool_free(pool, at[i], (bfc_fence)i + 1), BFC_OK);
    return start;
}

static bool is_in(bfc_addr at, bfc_addr region, uint64_t size) {
    return at >= region && at - region < size;
}

Test(policy, the_largest_room_may_be_of_small_or_of_large_blocks) {
    struct bfc_pool_room room;
    open_pool(BFC_POLICY_PYTORCH);
    bfc_addr small = get(KIB), large = get(40 * MIB);
    give(small);
    bfc_pool_read_room(pool, &room);
    cr_expect_eq(room.largest, 2 * MIB);
    give(large);
    bfc_pool_read_room(pool, &room);
    cr_expect_eq(room.largest, 40 * MIB);
}

Test(policy, a_small_block_does_not_pin_a_large_region_that_is_pending) {
    open_reusing();
    bfc_addr region = give_pending_region(1);
    cr_expect_not(is_in(get_pending(4 * MIB), region, 1024 * MIB));
    cr_expect_eq(stats().reserved, 1056 * MIB);
    cr_expect_eq(get_pending(512 * MIB), region);
}

Test(policy, a_small_block_does_not_pin_a_large_region_of_several_pending_blocks) {
    open_reusing();
    bfc_addr region = give_pending_region(4);
    cr_expect_not(is_in(get_pending(4 * MIB), region, 1024 * MIB));
}

Test(policy, a_small_block_does_not_pin_a_large_region_by_a_run) {
    open_reusing();
    bfc_addr region = give_pending_region(64);
    cr_expect_not(is_in(get_pending(20 * MIB), region, 1024 * MIB));
}

Test(policy, a_pending_region_serves_a_small_block_where_the_pool_cannot_grow) {
    config.limit = 1024 * MIB;
    open_reusing();
    bfc_addr region = give_pending_region(1);
    cr_expect(is_in(get_pending(4 * MIB), region, 1024 * MIB));
    cr_expect_eq(stats().waits, 0);
}

Test(policy, a_run_serves_where_the_pool_cannot_grow) {
    config.limit = 1024 * MIB;
    open_reusing();
    bfc_addr region = give_pending_region(64);
    cr_expect(is_in(get_pending(20 * MIB), region, 1024 * MIB));
    cr_expect_eq(stats().waits, 0);
}

Test(policy, where_giving_back_may_wait_what_fits_goes_first) {
    config.release_waits = true;
    config.max_split = 20 * MIB;
    fake.capacity = 400 * MIB;
    open_pool(BFC_POLICY_PYTORCH);
    give(get(390 * MIB));
    for (int i = 0; i < 300; i++)
        get(MIB);
    cr_expect_eq(stats().release_calls, 0);
}
