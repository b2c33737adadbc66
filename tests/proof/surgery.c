/*
 * Splitting, absorbing and merging (core.c): a region of BLOCKS blocks of any sizes, in any states
 * in which no two neighbours are clean, is operated on once, and once back:
 *   a part of any size is taken off the front of a clean block, or the whole where the host has no
 *   memory for a record, and made clean again: all is as it was;
 *   a live block is made clean, whatever its neighbours are.
 * After each the blocks tile the region, are linked to each other from both sides, no two
 * neighbours are clean, each clean block alone is in the one bin of its size, the counters are the
 * sums over the blocks, and no record is lost.
 */
#include "tests/proof/prover.h"

#include "pool/core.c"

#ifndef BLOCKS
#define BLOCKS 3
#endif
#define HEAD 1
#define FIRST 2
#define RECORDS (FIRST + BLOCKS + 1)  /* one to spare */
#define MOST_SIZE ((uint64_t)1 << 30) /* in granules: the sum of all is no more than 2^32 */
#define GRANULE_BITS 9

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic" /* ranges of elements */
/* As bins_open makes them, but with no loop for the prover to unwind. */
static const struct bins no_blocks = {.heads = {[0 ... BIN_COUNT + BIN_WINDOW - 1] = NO_HEAD}};
#pragma GCC diagnostic pop
static struct block blocks[RECORDS];
static struct block_detail details[RECORDS];
static struct bfc_pool pool;
static struct bfc_pool_stats stats;
static bfc_addr region_start;
static uint64_t region_granules, clean_granules;

#if defined(BFC_PROVER)
bool host_array_commit_slowly(struct host_array *array, uint64_t bytes) {
    (void)array, (void)bytes;
    return false; /* beyond the records here the host has no memory */
}
#endif

static void lay_block(block_index b, bfc_addr start) {
    blocks[b] = (struct block){.tagged = start,
                               .last = (uint32_t)any_between(0, MOST_SIZE - 1),
                               .previous = b - 1,
                               .next = b < FIRST + BLOCKS - 1 ? b + 1 : 0};
    /* BLOCK_LIVE, BLOCK_DIRTY, or BLOCK_CLEAN if the one before is not clean */
    bool after_clean = block_state(&blocks[b - 1]) == BLOCK_CLEAN;
    uint64_t state = any_between(0, after_clean ? 1 : 2);
    block_set_state(&blocks[b], state == 2 ? BLOCK_CLEAN : state ? BLOCK_DIRTY : BLOCK_LIVE);
    if (block_state(&blocks[b]) == BLOCK_CLEAN) {
        bins_insert(&pool.clean, blocks, b, true);
        clean_granules += block_granules(&blocks[b]);
    }
    region_granules += block_granules(&blocks[b]);
}

static void lay_region(void) {
    pool = (struct bfc_pool){.blocks = blocks,
                             .details = details,
                             .stats = &stats,
                             .granule_bits = GRANULE_BITS,
                             .high = RECORDS,
                             .oldest_mark = UINT64_MAX,
                             .rules = {.plain_most = MOST_GRANULES, .cuts_all = true}};
    stats = (struct bfc_pool_stats){.sequence = 0};
    pool.clean = no_blocks;
    blocks[0] = (struct block){.tagged = 0};
    region_start = any_between(1, (uint64_t)1 << 30) << GRANULE_BITS;
    region_granules = clean_granules = 0;
    blocks[HEAD] = (struct block){.tagged = region_start | BLOCK_HEAD, .next = FIRST};
    for (block_index b = FIRST; b < FIRST + BLOCKS; b++)
        lay_block(b, region_start + (region_granules << GRANULE_BITS));
    pool.records = 1 + BLOCKS;
    if (any_between(0, 1)) { /* a record is to spare, or none */
        pool.records++;
        slot_vacate(&pool, RECORDS - 1);
    }
    stats.clean = clean_granules << GRANULE_BITS;
}

static void check_bin_of(block_index sought) {
    unsigned bin = bin_of(block_granules(&blocks[sought])), times = 0;
    block_index before = 0, b = (block_index)pool.clean.heads[bin];
    assert((pool.clean.words[bin / 64] >> (bin % 64) & 1) == (b != 0));
    for (unsigned i = 0; i < RECORDS && b; i++) {
        assert(b < RECORDS && block_state(&blocks[b]) == BLOCK_CLEAN);
        assert(bin_of(block_granules(&blocks[b])) == bin && blocks[b].before == before);
        times += b == sought;
        before = b;
        b = blocks[b].after;
    }
    assert(!b && times == (block_state(&blocks[sought]) == BLOCK_CLEAN));
}

/* `apart`: a block that is in no bin for the moment, though clean; or 0. */
static void check(block_index apart) {
    uint64_t granules = 0, clean = 0;
    unsigned records = 1;
    block_index before = HEAD, b = blocks[HEAD].next;
    assert(block_state(&blocks[HEAD]) == BLOCK_HEAD);
    for (unsigned i = 0; i < RECORDS && b; i++) {
        const struct block *at = &blocks[b];
        assert(b < RECORDS && at->previous == before);
        assert(block_start(at) == region_start + (granules << GRANULE_BITS));
        assert(block_state(at) <= BLOCK_DIRTY);
        granules += block_granules(at);
        if (block_state(at) == BLOCK_CLEAN) {
            clean += block_granules(at);
            assert(b == apart || before == apart || block_state(&blocks[before]) != BLOCK_CLEAN);
            if (b != apart)
                check_bin_of(b);
        }
        records++;
        before = b;
        b = at->next;
    }
    assert(!b && granules == region_granules);
    assert(clean << GRANULE_BITS == stats.clean);
    assert(pool.records == records);
}

/* Takes a part off a clean block, and gives it back. */
static void split_and_merge(block_index b) {
    struct block before = blocks[b];
    struct request request = {.granules = any_between(1, block_granules(&blocks[b]))};
    bool spare = pool.vacant, whole = request.granules == block_granules(&before);
    block_index taken = take_off(&pool, &pool.clean, b, &request, true);
    assert(taken && (taken == b) == (whole || !spare));
    assert(block_start(&blocks[taken]) == block_start(&before));
    assert(block_granules(&blocks[taken]) ==
           (taken == b ? block_granules(&before) : request.granules));
    check(taken);
    block_set_state(&blocks[taken], BLOCK_LIVE);
    stats.clean -= block_size(&pool, &blocks[taken]);
    pool_make_free(&pool, taken, BFC_NO_MARK);
    check(0);
    assert(blocks[b].tagged == before.tagged && blocks[b].last == before.last);
    assert(blocks[b].previous == before.previous && blocks[b].next == before.next);
    assert((pool.vacant != 0) == spare);
}

void prove(void) {
    lay_region();
    check(0);
    block_index b = (block_index)any_between(FIRST, FIRST + BLOCKS - 1);
    if (block_state(&blocks[b]) == BLOCK_CLEAN) {
        split_and_merge(b);
    } else if (block_state(&blocks[b]) == BLOCK_LIVE) {
        pool_make_free(&pool, b, BFC_NO_MARK);
        check(0);
    }
}
