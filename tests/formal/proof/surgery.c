/*
 * Splitting, absorbing and merging (take.h): a region of BLOCKS blocks of any sizes, in any states
 * in which no two neighbours are ready, is operated on once, and once back:
 *   a part of any size is taken off the front of a ready block, or the whole where the host has no
 *   memory for a record, and made ready again: all is as it was;
 *   a live block is made ready, whatever its neighbours are.
 * After each the blocks tile the region, are linked to each other from both sides, no two
 * neighbours are ready, each ready block alone is in the one bin of its size, the counters are the
 * sums over the blocks, and no record is lost.
 */
#include "pool/search/take.h"
#include "tests/formal/proof/prover.h"

#ifndef BLOCKS
#define BLOCKS 3
#endif
#define HEAD 1
#define FIRST 2
#define RECORDS (FIRST + BLOCKS + 1)  /* one to spare */
#define MOST_SIZE ((uint64_t)1 << 30) /* in granules: the sum of all is no more than 2^32 */

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
static uint64_t region_granules, ready_granules;

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
    /* BLOCK_LIVE, BLOCK_PENDING, or BLOCK_READY if the one before is not ready */
    bool after_ready = block_state(&blocks[b - 1]) == BLOCK_READY;
    uint64_t state = any_between(0, after_ready ? 1 : 2);
    block_set_state(&blocks[b], state == 2 ? BLOCK_READY : state ? BLOCK_PENDING : BLOCK_LIVE);
    if (block_state(&blocks[b]) == BLOCK_READY) {
        bins_insert(&pool.ready, blocks, b, true);
        ready_granules += block_granules(&blocks[b]);
    }
    region_granules += block_granules(&blocks[b]);
}

static void lay_region(void) {
    pool = (struct bfc_pool){
        .blocks = blocks,
        .details = details,
        .stats = &stats,
        .high = RECORDS,
        .oldest_fence = UINT64_MAX,
        .rules = {.plain_most = MOST_GRANULES, .whole_above = MOST_GRANULES, .cuts_all = true}};
    stats = (struct bfc_pool_stats){.sequence = 0};
    pool.ready = no_blocks;
    blocks[0] = (struct block){.tagged = 0};
    region_start = any_between(1, (uint64_t)1 << 30) << BFC_GRANULE_BITS;
    region_granules = ready_granules = 0;
    blocks[HEAD] = (struct block){.tagged = region_start | BLOCK_HEAD, .next = FIRST};
    for (block_index b = FIRST; b < FIRST + BLOCKS; b++)
        lay_block(b, region_start + (region_granules << BFC_GRANULE_BITS));
    pool.records = 1 + BLOCKS;
    if (any_between(0, 1)) { /* a record is to spare, or none */
        pool.records++;
        slot_vacate(&pool, RECORDS - 1);
    }
    stats.ready = ready_granules << BFC_GRANULE_BITS;
}

static void check_bin_of(block_index sought) {
    unsigned bin = bin_of(block_granules(&blocks[sought])), times = 0;
    block_index before = 0, b = (block_index)pool.ready.heads[bin];
    assert((pool.ready.words[bin / 64] >> (bin % 64) & 1) == (b != 0));
    for (unsigned i = 0; i < RECORDS && b; i++) {
        assert(b < RECORDS && block_state(&blocks[b]) == BLOCK_READY);
        assert(bin_of(block_granules(&blocks[b])) == bin && blocks[b].before == before);
        times += b == sought;
        before = b;
        b = blocks[b].after;
    }
    assert(!b && times == (block_state(&blocks[sought]) == BLOCK_READY));
}

/* `apart`: a block that is in no bin for the moment, though ready; or 0. */
static void check(block_index apart) {
    uint64_t granules = 0, ready = 0;
    unsigned records = 1;
    block_index before = HEAD, b = blocks[HEAD].next;
    assert(block_state(&blocks[HEAD]) == BLOCK_HEAD);
    for (unsigned i = 0; i < RECORDS && b; i++) {
        const struct block *at = &blocks[b];
        assert(b < RECORDS && at->previous == before);
        assert(block_start(at) == region_start + (granules << BFC_GRANULE_BITS));
        assert(block_state(at) <= BLOCK_PENDING);
        granules += block_granules(at);
        if (block_state(at) == BLOCK_READY) {
            ready += block_granules(at);
            assert(b == apart || before == apart || block_state(&blocks[before]) != BLOCK_READY);
            if (b != apart)
                check_bin_of(b);
        }
        records++;
        before = b;
        b = at->next;
    }
    assert(!b && granules == region_granules);
    assert(ready << BFC_GRANULE_BITS == stats.ready);
    assert(pool.records == records);
}

/* Takes a part off a ready block, and gives it back. */
static void split_and_merge(block_index b) {
    struct block before = blocks[b];
    struct request request = {.granules = any_between(1, block_granules(&blocks[b]))};
    bool spare = pool.vacant, whole = request.granules == block_granules(&before);
    block_index taken = take_off(&pool, &pool.ready, b, &request, true);
    assert(taken && (taken == b) == (whole || !spare));
    assert(block_start(&blocks[taken]) == block_start(&before));
    assert(block_granules(&blocks[taken]) ==
           (taken == b ? block_granules(&before) : request.granules));
    check(taken);
    block_set_state(&blocks[taken], BLOCK_LIVE);
    stats.ready -= block_size(&blocks[taken]);
    surgery_make_free(&pool, taken, BFC_NO_FENCE);
    check(0);
    assert(blocks[b].tagged == before.tagged && blocks[b].last == before.last);
    assert(blocks[b].previous == before.previous && blocks[b].next == before.next);
    assert((pool.vacant != 0) == spare);
}

void prove(void) {
    lay_region();
    check(0);
    block_index b = (block_index)any_between(FIRST, FIRST + BLOCKS - 1);
    if (block_state(&blocks[b]) == BLOCK_READY) {
        split_and_merge(b);
    } else if (block_state(&blocks[b]) == BLOCK_LIVE) {
        surgery_make_free(&pool, b, BFC_NO_FENCE);
        check(0);
    }
}
