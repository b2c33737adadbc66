/* The pool's interface, call by call, over a made-up device. */
#include <criterion/criterion.h>

#include "tests/unit/pool/fake_upstream.h"

#define MIB (UINT64_C(1) << 20)

static struct fake_upstream fake;
static struct bfc_pool *pool;
static struct bfc_pool_config config;

static void open_pool(void) {
    struct bfc_upstream upstream = fake_upstream_table(&fake);
    cr_assert_eq(bfc_pool_create(&pool, &config, &upstream), BFC_OK);
}

static void set_up(void) {
    fake_upstream_init(&fake, 1024 * MIB);
    bfc_pool_config_default(&config);
}

static void tear_down(void) {
    cr_assert_null(bfc_pool_check(pool));
    bfc_pool_destroy(pool, true);
    cr_assert_eq(fake.taken, 0);
    cr_assert_eq(fake.bad_releases, 0);
}

static struct bfc_pool_stats stats(void) {
    struct bfc_pool_stats s;
    bfc_pool_read_stats(pool, &s);
    return s;
}

static struct bfc_block_info get_with(uint64_t bytes, unsigned flags) {
    struct bfc_block_info block;
    cr_assert_eq(bfc_pool_allocate(pool, bytes, flags, &block), BFC_OK);
    cr_assert_null(bfc_pool_check(pool));
    return block;
}

static struct bfc_block_info get(uint64_t bytes) {
    return get_with(bytes, 0);
}

static void give(struct bfc_block_info block, bfc_fence fence) {
    cr_assert_eq(bfc_pool_free(pool, block.start, fence), BFC_OK);
    const char *fault = bfc_pool_check(pool);
    cr_assert_null(fault, "%s", fault);
}

TestSuite(pool, .init = set_up, .fini = tear_down);

Test(pool, tells_about_the_block) {
    open_pool();
    struct bfc_block_info block = get(1000);
    cr_assert_eq(block.size, 1024);
    cr_assert_eq(block.requested, 1000);
    cr_assert_eq(block.fence, BFC_NO_FENCE);
    cr_assert_eq(block.start % BFC_GRANULE, 0);
    struct bfc_block_info found;
    cr_assert(bfc_pool_find(pool, block.start + 1023, &found));
    cr_assert_eq(found.start, block.start);
    cr_assert_eq(found.id, block.id);
    cr_assert_eq(found.free_before, 0);
    cr_assert_eq(found.free_after, 2 * MIB - 1024);
    cr_assert_eq(found.region_size, 2 * MIB);
    cr_assert_not(bfc_pool_find(pool, block.start - 1, &found));
    give(block, BFC_NO_FENCE);
    cr_assert_gt(get(1000).id, block.id);
}

Test(pool, answers_bad_sizes) {
    open_pool();
    struct bfc_block_info block = {.id = 77};
    cr_assert_eq(bfc_pool_allocate(pool, 0, 0, &block), BFC_INVALID_SIZE);
    cr_assert_eq(bfc_pool_allocate(pool, UINT64_MAX, 0, &block), BFC_OUT_OF_MEMORY);
    cr_assert_eq(bfc_pool_allocate(pool, UINT64_MAX - 511, 0, &block), BFC_OUT_OF_MEMORY);
    cr_assert_eq(bfc_pool_allocate(pool, 1025 * MIB, 0, &block), BFC_OUT_OF_MEMORY);
    cr_assert_eq(block.id, 77);
    cr_assert_eq(stats().out_of_memory, 3);
    get(1024 * MIB);
}

Test(pool, answers_bad_pointers) {
    open_pool();
    struct bfc_block_info a = get(4096), b = get(4096);
    cr_assert_eq(bfc_pool_free(pool, a.start + 512, 0), BFC_INVALID_POINTER);
    cr_assert_eq(bfc_pool_free(pool, a.start + 1, 0), BFC_INVALID_POINTER);
    cr_assert_eq(bfc_pool_free(pool, 4096, 0), BFC_UNKNOWN_POINTER);
    give(a, BFC_NO_FENCE);
    cr_assert_eq(bfc_pool_free(pool, a.start, 0), BFC_INVALID_POINTER);
    give(b, BFC_NO_FENCE);
    cr_assert_eq(bfc_pool_free(pool, b.start, 0), BFC_INVALID_POINTER);
    cr_assert_eq(stats().invalid_frees, 4);
}

Test(pool, coalesces_to_the_first_address) {
    open_pool();
    struct bfc_block_info a = get(4096), b = get(4096), c = get(4096);
    give(a, 0);
    give(c, 0);
    give(b, 0);
    cr_assert_eq(get(2 * MIB).start, a.start);
    cr_assert_eq(stats().regions, 1);
}

Test(pool, grows_by_doubling) {
    open_pool();
    get(1);
    get(2 * MIB);
    get(5 * MIB);
    struct bfc_pool_stats s = stats();
    cr_assert_eq(s.reserved, (2 + 4 + 8) * MIB);
    cr_assert_eq(s.misses, 3);
}

Test(pool, backs_off_when_refused) {
    fake.capacity = 7 * MIB;
    config.growth_size = 8 * MIB;
    open_pool();
    get(MIB);
    struct bfc_pool_stats s = stats();
    cr_assert_eq(s.reserved, 4 * MIB, "half of a refused step leaves the rest to others");
    cr_assert_eq(s.refusals, 1);
}

Test(pool, backs_off_by_tenths_from_a_fixed_step) {
    fake.capacity = 7 * MIB;
    config.growth = BFC_GROWTH_FIXED;
    config.growth_size = 8 * MIB;
    open_pool();
    get(MIB);
    struct bfc_pool_stats s = stats();
    cr_assert_eq(s.reserved, 6 * MIB);
    cr_assert_eq(s.refusals, s.reserve_calls - 1);
}

Test(pool, keeps_the_limit) {
    config.limit = 5 * MIB;
    open_pool();
    get(2 * MIB);
    get(MIB);
    cr_assert_eq(stats().reserved, 5 * MIB);
    struct bfc_block_info block;
    cr_assert_eq(bfc_pool_allocate(pool, 3 * MIB, 0, &block), BFC_OUT_OF_MEMORY);
}

Test(pool, reports_a_failing_upstream) {
    fake.fail_reserve = 1;
    open_pool();
    struct bfc_block_info block;
    cr_assert_eq(bfc_pool_allocate(pool, 1, 0, &block), BFC_UPSTREAM_FAILED);
    cr_assert_eq(fake.reserves, 1);
    get(1);
}

Test(pool, keeps_pending_blocks_from_lazy_allocations) {
    open_pool();
    struct bfc_block_info a = get(2 * MIB);
    give(a, 1);
    cr_assert_eq(stats().pending, 2 * MIB);
    struct bfc_block_info b = get(2 * MIB);
    cr_assert_neq(b.start, a.start);
    cr_assert_eq(fake.waits, 0);
    get(2 * MIB); /* the rest of the second region */
    fake.completed = 1;
    give(b, 2);
    cr_assert_eq(get(2 * MIB).start, a.start);
}

Test(pool, waits_above_the_pending_budget) {
    config.pending_budget = MIB;
    open_pool();
    struct bfc_block_info a = get(2 * MIB);
    give(a, 1);
    cr_assert_eq(get(2 * MIB).start, a.start);
    cr_assert_eq(fake.waits, 1);
    cr_assert_neq(fake.last_wait_timeout, UINT64_MAX);
    fake.reachable = 1;
    give(a, 2);
    cr_assert_neq(get(2 * MIB).start, a.start);
    cr_assert_eq(stats().waits, 2);
}

Test(pool, hands_out_pending_blocks_in_order) {
    open_pool();
    struct bfc_block_info a = get(2 * MIB);
    give(a, 7);
    struct bfc_block_info b = get_with(MIB, BFC_ALLOCATE_PENDING);
    cr_assert_eq(b.start, a.start);
    cr_assert_eq(b.fence, 7);
    cr_assert_eq(stats().pending_reuses, 1);
    bfc_pool_share_region(pool, a.start, false);
    cr_assert_neq(get_with(MIB, BFC_ALLOCATE_PENDING).region_start, a.start);
}

Test(pool, keeps_deferred_apart_until_fenced) {
    open_pool();
    struct bfc_block_info a = get(2 * MIB);
    give(a, BFC_DEFERRED_FENCE);
    bfc_pool_complete(pool, UINT64_MAX);
    cr_assert_eq(stats().deferred, 2 * MIB);
    cr_assert_neq(get_with(MIB, BFC_ALLOCATE_PENDING).start, a.start);
    bfc_pool_fence_deferred(pool, UINT64_MAX - 1, UINT64_MAX);
    cr_assert_eq(stats().deferred, 0);
}

Test(pool, keeps_pending_blocks_apart_until_they_are_ready) {
    open_pool();
    struct bfc_block_info a = get(MIB), b = get(MIB), c = get(2 * MIB), found;
    cr_assert_eq(bfc_pool_free_awaited(pool, a.start), BFC_OK);
    cr_assert_eq(bfc_pool_free_awaited(pool, b.start), BFC_OK);
    cr_assert_eq(bfc_pool_free_awaited(pool, b.start), BFC_INVALID_POINTER);
    cr_assert_eq(bfc_pool_free(pool, a.start, BFC_NO_FENCE), BFC_INVALID_POINTER);
    cr_assert_null(bfc_pool_check(pool));
    cr_assert_eq(stats().pending, 2 * MIB);
    cr_assert(bfc_pool_find(pool, b.start, &found) && !found.live && found.size == MIB);
    bfc_pool_complete(pool, UINT64_MAX);
    bfc_pool_fence_deferred(pool, 1, UINT64_MAX);
    cr_assert_gt(get_with(MIB, BFC_ALLOCATE_PENDING).start, c.start);
    bfc_pool_ready(pool, b.start, BFC_NO_FENCE);
    bfc_pool_ready(pool, b.start, BFC_NO_FENCE); /* it is no more */
    bfc_pool_ready(pool, c.start, BFC_NO_FENCE); /* nor is a live block one */
    cr_assert_eq(stats().pending, MIB);
    cr_assert_eq(get(MIB).start, b.start);
    bfc_pool_ready(pool, a.start, BFC_DEFERRED_FENCE);
    cr_assert_eq(stats().deferred, MIB);
    cr_assert_eq(stats().pending, 0);
}

#define MOST_AWAITED_NS UINT64_C(1000000000)

/* Not by the fences of others, and not for ever. */
Test(pool, waits_for_pending_blocks_before_it_gives_up) {
    open_pool();
    fake.capacity = 2 * MIB;
    struct bfc_block_info a = get(2 * MIB), out;
    cr_assert_eq(bfc_pool_free_awaited(pool, a.start), BFC_OK);
    cr_assert_eq(bfc_pool_allocate(pool, MIB, 0, &out), BFC_OUT_OF_MEMORY);
    cr_assert_eq(stats().waits, 1); /* of several slices */
    cr_assert_neq(fake.last_wait_timeout, UINT64_MAX);
    cr_assert_eq(fake.clock, MOST_AWAITED_NS);
    bfc_pool_ready(pool, a.start, BFC_NO_FENCE);
    cr_assert_eq(get(MIB).start, a.start);
}

/* The upstream of the test below: what becomes ready during the first wait is taken by another
 * thread at once, whose own last block becomes ready during the second. */
static struct bfc_block_info contended[2], taken_meanwhile;

static bfc_fence wait_beside_another(void *context, bfc_fence fence, uint64_t timeout_ns) {
    (void)fence, (void)timeout_ns;
    unsigned waits = ((struct fake_upstream *)context)->waits++;
    if (waits < 2)
        bfc_pool_ready(pool, contended[waits].start, BFC_NO_FENCE);
    if (waits == 0)
        cr_assert_eq(bfc_pool_allocate(pool, 32 * MIB, 0, &taken_meanwhile), BFC_OK);
    return BFC_NO_FENCE;
}

Test(pool, looks_again_for_awaited_blocks_before_a_region_goes_back) {
    struct bfc_upstream upstream = fake_upstream_table(&fake);
    upstream.wait = wait_beside_another;
    cr_assert_eq(bfc_pool_create(&pool, &config, &upstream), BFC_OK);
    give(get(MIB), BFC_NO_FENCE);
    for (int i = 0; i < 2; i++)
        contended[i] = get(32 * MIB);
    fake.capacity = fake.taken;
    for (int i = 0; i < 2; i++)
        cr_assert_eq(bfc_pool_free_awaited(pool, contended[i].start), BFC_OK);
    cr_assert_eq(get(32 * MIB).start, contended[1].start);
    cr_assert_eq(fake.releases, 0);
}

Test(pool, trims_regions_that_are_not_ready) {
    open_pool();
    struct bfc_block_info a = get(MIB), b = get(MIB), c = get(2 * MIB), d = get(64 * MIB), kept;
    give(a, BFC_DEFERRED_FENCE);
    give(b, 7);
    give(c, 8);
    cr_assert_eq(bfc_pool_free_awaited(pool, d.start), BFC_OK);
    cr_assert(bfc_pool_find(pool, d.start, &kept));
    cr_assert_eq(bfc_pool_trim(pool, UINT64_MAX), 0);
    uint64_t rest = stats().reserved - kept.region_size;
    cr_assert_eq(bfc_pool_trim_used(pool, UINT64_MAX), rest);
    cr_assert_eq(stats().reserved, kept.region_size);
    cr_assert_eq(stats().deferred, 0);
    cr_assert_null(bfc_pool_check(pool));
    bfc_pool_ready(pool, d.start, 9);
    cr_assert_eq(bfc_pool_trim_used(pool, 1), kept.region_size);
}

Test(pool, fences_only_the_deferred_that_had_come) {
    open_pool();
    struct bfc_block_info a = get(MIB), between = get(MIB), b = get(MIB), c = get(MIB), found;
    give(a, BFC_DEFERRED_FENCE);
    uint64_t arrivals = bfc_pool_deferred_arrivals(pool);
    give(b, BFC_DEFERRED_FENCE);
    bfc_pool_fence_deferred(pool, 5, arrivals);
    cr_assert(bfc_pool_find(pool, a.start, &found) && found.fence == 5);
    cr_assert(bfc_pool_find(pool, b.start, &found) && found.fence == BFC_DEFERRED_FENCE);
    arrivals = bfc_pool_deferred_arrivals(pool);
    give(c, BFC_DEFERRED_FENCE); /* joins b, which is then as late as c */
    bfc_pool_fence_deferred(pool, 6, arrivals);
    cr_assert_eq(stats().deferred, 2 * MIB);
    bfc_pool_fence_deferred(pool, 7, UINT64_MAX);
    cr_assert(bfc_pool_find(pool, b.start, &found) && found.fence == 7 && found.size == 2 * MIB);
    give(between, BFC_NO_FENCE);
    cr_assert_null(bfc_pool_check(pool));
}

Test(pool, a_live_block_keeps_its_fence) {
    open_pool();
    give(get(4 * MIB), 7);
    struct bfc_block_info a = get_with(3 * MIB, BFC_ALLOCATE_PENDING), found;
    cr_assert_eq(a.fence, 7);
    cr_assert_eq(bfc_pool_carve(pool, a.start, MIB), BFC_OK);
    cr_assert(bfc_pool_find(pool, a.start, &found) && found.live && found.fence == 7);
    cr_assert(found.id == a.id && found.requested == MIB);
    cr_assert(bfc_pool_find(pool, a.start + MIB, &found) && found.live && found.fence == 7);
    cr_assert(found.requested == 0 && found.size == 2 * MIB);
}

/* What is left of a run has its highest fence, and may lie beside a block that had that before. */
Test(pool, what_is_left_of_a_run_merges) {
    open_pool();
    give(get(11 * MIB), BFC_NO_FENCE); /* so that they lie side by side */
    struct bfc_block_info a = get(8 * MIB), b = get(MIB), c = get(MIB), d = get(MIB), found;
    while (stats().ready >= MIB)
        get(MIB);
    give(a, 1);
    give(b, 2);
    give(c, BFC_NO_FENCE);
    give(d, 2);
    cr_assert_eq(get_with(19 * MIB / 2, BFC_ALLOCATE_PENDING).start, a.start);
    cr_assert_null(bfc_pool_check(pool));
    cr_assert(bfc_pool_find(pool, d.start, &found) && found.size == 3 * MIB / 2);
}

Test(pool, hit_only_never_asks) {
    open_pool();
    struct bfc_block_info block;
    cr_assert_eq(bfc_pool_allocate(pool, 1, BFC_ALLOCATE_HIT_ONLY, &block), BFC_OUT_OF_MEMORY);
    struct bfc_block_info a = get(MIB);
    give(a, 3);
    cr_assert_eq(bfc_pool_allocate(pool, 2 * MIB, BFC_ALLOCATE_HIT_ONLY, &block),
                 BFC_OUT_OF_MEMORY);
    cr_assert_eq(get_with(MIB, BFC_ALLOCATE_HIT_ONLY).start, a.start + MIB);
    cr_assert_eq(get_with(MIB, BFC_ALLOCATE_HIT_ONLY | BFC_ALLOCATE_PENDING).fence, 3);
    cr_assert_eq(fake.polls + fake.waits, 0);
    cr_assert_eq(stats().out_of_memory, 0);
    cr_assert_eq(stats().misses, 1);
}

Test(pool, goes_down_the_ladder) {
    fake.capacity = 4 * MIB;
    config.growth = BFC_GROWTH_EXACT;
    open_pool();
    struct bfc_block_info a = get(2 * MIB), b = get(2 * MIB);
    give(a, 1);
    cr_assert_eq(get(2 * MIB).start, a.start); /* waited */
    cr_assert_eq(fake.last_wait_timeout, UINT64_MAX);
    give(a, 0);
    give(b, 0);
    get(3 * MIB); /* gave back */
    cr_assert_eq(stats().retries, 2);
    cr_assert_eq(stats().last_resorts, 2);
    cr_assert_eq(stats().last_resorts_saved, 2);
}

/* Who looks further than the pool can counts what came of it. */
Test(pool, leaves_counting_to_its_caller) {
    struct bfc_block_info block;
    fake.capacity = 4 * MIB;
    config.growth = BFC_GROWTH_EXACT;
    open_pool();
    get(4 * MIB);
    cr_assert_eq(bfc_pool_allocate(pool, 2 * MIB, BFC_ALLOCATE_UNCOUNTED, &block),
                 BFC_OUT_OF_MEMORY);
    cr_assert_eq(bfc_pool_allocate(pool, UINT64_MAX, BFC_ALLOCATE_UNCOUNTED, &block),
                 BFC_OUT_OF_MEMORY);
    cr_assert_eq(stats().out_of_memory, 0);
    bfc_pool_count_out_of_memory(pool);
    fake.capacity = 6 * MIB;
    cr_assert_eq(bfc_pool_allocate(pool, 2 * MIB, BFC_ALLOCATE_AGAIN, &block), BFC_OK);
    cr_assert_eq(stats().retries, 0);
    bfc_pool_count_saved(pool);
    cr_assert_eq(stats().retries, 1);
    cr_assert_eq(stats().out_of_memory, 1);
}

Test(pool, last_resorts_can_be_switched_off) {
    struct bfc_block_info block;
    fake.capacity = 4 * MIB;
    config.growth = BFC_GROWTH_EXACT;
    config.no_last_resorts = true;
    open_pool();
    give(get(2 * MIB), 0);
    cr_assert_eq(bfc_pool_allocate(pool, 3 * MIB, 0, &block), BFC_OUT_OF_MEMORY);
    cr_assert_eq(fake.releases, 0);
}

Test(pool, trims_as_much_as_asked) {
    config.growth = BFC_GROWTH_EXACT;
    open_pool();
    struct bfc_block_info a = get(2 * MIB), b = get(4 * MIB), c = get(8 * MIB);
    give(a, 0);
    give(b, 0);
    cr_assert_eq(bfc_pool_trim(pool, 3 * MIB), 4 * MIB);
    cr_assert_eq(bfc_pool_trim(pool, UINT64_MAX), 2 * MIB);
    bfc_pool_share_region(pool, c.start, true);
    give(c, 0);
    cr_assert_eq(bfc_pool_trim(pool, UINT64_MAX), 0);
    bfc_pool_share_region(pool, c.start, false);
    cr_assert_eq(bfc_pool_trim(pool, UINT64_MAX), 8 * MIB);
}

/* The promise of `lazy`: live + pending never above the most live, the budget and one request. */
Test(pool, keeps_pending_bytes_within_the_budget) {
    config.pending_budget = 8 * MIB;
    config.growth = BFC_GROWTH_EXACT;
    open_pool();
    for (bfc_fence fence = 1; fence <= 200; fence++) {
        struct bfc_block_info a = get(MIB), b = get(MIB);
        give(a, 2 * fence);
        give(b, 2 * fence + 1);
        struct bfc_pool_stats s = stats();
        cr_assert_leq(s.in_use + s.pending, (2 + 8 + 1) * MIB);
    }
    cr_assert_leq(fake.reserves, 11);
    cr_assert_eq(fake.polls > 0, true);
}

Test(pool, never_waits_while_a_ready_block_fits) {
    config.pending_budget = 0;
    open_pool();
    struct bfc_block_info a = get(MIB), b = get(64 * MIB);
    give(a, 1);
    give(b, BFC_NO_FENCE);
    for (int i = 0; i < 60; i++)
        get(MIB);
    cr_assert_eq(fake.waits, 0);
}

Test(pool, counts_in_memory_of_the_caller) {
    static struct bfc_pool_stats shown;
    config.stats = &shown;
    open_pool();
    give(get(4096), BFC_NO_FENCE);
    cr_assert_eq(shown.sequence % 2, 0);
    cr_assert_gt(shown.sequence, 0);
    cr_assert_eq(shown.allocations, 1);
    cr_assert_eq(shown.frees, 1);
    cr_assert_eq(stats().sequence % 2, 0);
}

/* Ready blocks of 1 and 4 MiB, kept apart by live ones, with each way to keep them in order. */
static void check_what_is_too_small(enum bfc_policy policy) {
    config.policy = policy;
    config.growth = BFC_GROWTH_PREALLOCATE;
    config.preallocate = 64 * MIB;
    open_pool();
    struct bfc_block_info small = get(MIB), a = get(MIB), large = get(4 * MIB), b = get(MIB);
    struct bfc_block_info rest = get(stats().ready);
    give(small, BFC_NO_FENCE);
    give(large, BFC_NO_FENCE);
    cr_assert_eq(stats().ready, 5 * MIB);
    cr_expect_eq(bfc_pool_ready_below(pool, 1), 0);
    cr_expect_eq(bfc_pool_ready_below(pool, MIB), 0);
    cr_expect_eq(bfc_pool_ready_below(pool, MIB + 1), MIB);
    cr_expect_eq(bfc_pool_ready_below(pool, 4 * MIB), MIB);
    cr_expect_eq(bfc_pool_ready_below(pool, 4 * MIB + 1), 5 * MIB);
    cr_expect_eq(bfc_pool_ready_below(pool, UINT64_MAX), 5 * MIB);
    give(a, BFC_NO_FENCE);
    cr_expect_eq(bfc_pool_ready_below(pool, 6 * MIB), 0);
    give(b, BFC_NO_FENCE);
    give(rest, BFC_NO_FENCE);
}

Test(pool, tells_what_is_too_small_for_a_request) {
    check_what_is_too_small(BFC_POLICY_BFC);
}

Test(pool, tells_what_is_too_small_in_an_exact_order) {
    check_what_is_too_small(BFC_POLICY_TF);
}

Test(pool, notes_what_is_handed_out_and_taken_back) {
    struct bfc_pool_note notes[4] = {{0, 0, 0}};
    open_pool();
    struct bfc_block_info before = get(MIB), a, b;
    bfc_pool_take_notes(pool, notes, 3);
    cr_assert_eq(bfc_pool_notes(pool), 0);
    a = get(1000);
    b = get(2 * MIB);
    bfc_pool_free(pool, a.start, BFC_NO_FENCE);
    cr_assert_eq(bfc_pool_free(pool, a.start, BFC_NO_FENCE), BFC_INVALID_POINTER);
    bfc_pool_free(pool, before.start, BFC_NO_FENCE);
    cr_assert_eq(bfc_pool_notes(pool), 3);
    cr_assert(notes[0].id == a.id && notes[0].bytes == 1000);
    cr_assert(notes[1].id == b.id && notes[1].bytes == 2 * MIB);
    cr_assert(notes[2].id == a.id && notes[2].bytes == 0);
    cr_assert(notes[0].thread && notes[0].thread == notes[1].thread);
    cr_assert_eq(notes[3].id, 0, "it was to note three");
    bfc_pool_take_notes(pool, NULL, 0);
    bfc_pool_free(pool, b.start, BFC_NO_FENCE);
    cr_assert_eq(bfc_pool_notes(pool), 0);
}

Test(pool, holds_a_region_of_two_tebibytes) {
    const uint64_t tib = MIB << 20;
    fake.capacity = 4 * tib;
    config.growth = BFC_GROWTH_PREALLOCATE;
    config.preallocate = 2 * tib;
    open_pool();
    struct bfc_block_info large = get(2 * tib - MIB), small = get(1);
    cr_expect_eq(stats().regions, 1);
    cr_expect_eq(small.start, large.start + large.size);
    give(large, BFC_NO_FENCE);
    give(small, BFC_NO_FENCE);
    cr_expect_eq(stats().largest_free, 2 * tib);
    cr_expect_eq(bfc_pool_allocate(pool, 2 * tib + 1, 0, &large), BFC_OUT_OF_MEMORY);
}
