/* Carving: a live block becomes neighbours that are freed on their own. */
#include <criterion/criterion.h>

#include "tests/unit/pool/fake_upstream.h"

#define MIB ((uint64_t)1 << 20)

static struct fake_upstream fake;
static struct bfc_pool *pool;

static void make_pool(void) {
    struct bfc_pool_config config;
    fake_upstream_init(&fake, 64 * MIB);
    struct bfc_upstream upstream = fake_upstream_table(&fake);
    bfc_pool_config_default(&config);
    cr_assert(bfc_pool_create(&pool, &config, &upstream) == BFC_OK);
}

static void drop_pool(void) {
    cr_expect(bfc_pool_check(pool) == NULL, "%s", bfc_pool_check(pool));
    bfc_pool_destroy(pool, true);
}

TestSuite(carve, .init = make_pool, .fini = drop_pool);

Test(carve, makes_neighbours_that_live_on_their_own) {
    struct bfc_block_info range, part;
    struct bfc_pool_stats stats;
    cr_assert(bfc_pool_allocate(pool, MIB, 0, &range) == BFC_OK);
    cr_assert(bfc_pool_carve(pool, range.start, 1000) == BFC_OK);
    cr_assert(bfc_pool_carve(pool, range.start + 1024, 512) == BFC_OK);
    cr_expect(bfc_pool_check(pool) == NULL);
    cr_assert(bfc_pool_find(pool, range.start + 999, &part));
    cr_expect(part.live && part.size == 1024 && part.requested == 1000);
    cr_assert(bfc_pool_find(pool, range.start + 1536, &part));
    cr_expect(part.live && part.size == MIB - 1536 && part.requested == 0 && part.id != range.id);
    bfc_pool_read_stats(pool, &stats);
    cr_expect(stats.blocks == 3 && stats.in_use == MIB && stats.allocations == 3);
    cr_expect(stats.hits + stats.misses == stats.allocations);
    cr_expect(stats.requested == 1000 + 512);
    for (uint64_t at = 0; at < 3; at++)
        cr_assert(bfc_pool_free(pool, range.start + (uint64_t[]){1024, 0, 1536}[at],
                                BFC_NO_FENCE) == BFC_OK);
    bfc_pool_read_stats(pool, &stats);
    cr_expect(stats.blocks == 0 && stats.in_use == 0 && stats.requested == 0);
}

Test(carve, of_all_is_no_cut) {
    struct bfc_block_info range;
    struct bfc_pool_stats stats;
    cr_assert(bfc_pool_allocate(pool, 4096, 0, &range) == BFC_OK);
    cr_assert(bfc_pool_carve(pool, range.start, 4000) == BFC_OK);
    bfc_pool_read_stats(pool, &stats);
    cr_expect(stats.blocks == 1 && stats.requested == 4000 && stats.allocations == 1);
}

Test(carve, refuses_what_is_no_live_block_or_too_large) {
    struct bfc_block_info range;
    cr_assert(bfc_pool_allocate(pool, 4096, 0, &range) == BFC_OK);
    cr_expect(bfc_pool_carve(pool, range.start, 0) == BFC_INVALID_SIZE);
    cr_expect(bfc_pool_carve(pool, range.start, 4097) == BFC_INVALID_SIZE);
    cr_expect(bfc_pool_carve(pool, range.start, UINT64_MAX) == BFC_INVALID_SIZE);
    cr_expect(bfc_pool_carve(pool, range.start + 512, 512) == BFC_INVALID_POINTER);
    cr_expect(bfc_pool_carve(pool, 4096, 512) == BFC_UNKNOWN_POINTER);
    cr_assert(bfc_pool_free(pool, range.start, BFC_NO_FENCE) == BFC_OK);
    cr_expect(bfc_pool_carve(pool, range.start, 512) == BFC_INVALID_POINTER);
}

Test(carve, makes_blocks_of_multiples_of_64_kib_only_at_such_multiples) {
    struct bfc_block_info range;
    cr_assert(bfc_pool_allocate(pool, MIB, 0, &range) == BFC_OK);
    cr_assert(bfc_pool_carve(pool, range.start, 512) == BFC_OK);
    cr_expect(bfc_pool_carve(pool, range.start + 512, BFC_ALIGNMENT) == BFC_INVALID_SIZE);
    cr_expect(bfc_pool_carve(pool, range.start + 512, BFC_ALIGNMENT - 512) == BFC_OK);
    cr_expect(bfc_pool_carve(pool, range.start + BFC_ALIGNMENT, BFC_ALIGNMENT + 1) == BFC_OK);
}
