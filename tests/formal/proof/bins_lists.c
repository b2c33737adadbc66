/*
 * The lists of the bins and their bitmaps: from empty bins, any STEPS insertions and removals of
 * BLOCKS blocks of any sizes and addresses. After each, in every bin that a block has: both bitmaps
 * tell whether it is empty; its list, read from either end, holds just the blocks that were put in
 * and not taken out; and what bins_pick answers is one of them and long enough.
 */
#include "tests/formal/proof/prover.h"

#include "pool/structures/bins.h"

#ifndef BLOCKS
#define BLOCKS 4
#endif
#ifndef STEPS
#define STEPS 5
#endif

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic" /* ranges of elements */
/* As bins_open makes them, but with no loop for the prover to unwind. */
static const struct bins no_blocks = {.heads = {[0 ... BIN_COUNT + BIN_WINDOW - 1] = NO_HEAD}};
#pragma GCC diagnostic pop
static struct bins bins;
static struct block blocks[BLOCKS + 1]; /* record 0 takes what is for none */
static bool inside[BLOCKS + 1];

static unsigned bin_of_block(block_index b) {
    return bin_of(block_granules(&blocks[b]));
}

static void check_bin(unsigned bin) {
    unsigned there = 0, found = 0;
    for (block_index b = 1; b <= BLOCKS; b++)
        there += inside[b] && bin_of_block(b) == bin;
    bool set = bins.words[bin / 64] >> (bin % 64) & 1;
    bool word_set = bins.words_in_use >> (bin / 64) & 1;
    assert(set == (there != 0));
    assert(set == (bins.heads[bin] != NO_HEAD));
    assert(word_set == (bins.words[bin / 64] != 0));
    block_index before = 0, b = (block_index)bins.heads[bin];
    for (unsigned i = 0; i < BLOCKS && b; i++) {
        assert(b <= BLOCKS && inside[b] && bin_of_block(b) == bin);
        assert(blocks[b].before == before);
        found++;
        before = b;
        b = blocks[b].after;
    }
    assert(!b && found == there);
    block_index first = (block_index)bins.heads[bin];
    assert(!first || bins.heads[bin] == head_of(blocks, first));
}

static void step(void) {
    block_index b = (block_index)any_between(1, BLOCKS);
    if (inside[b])
        bins_remove(&bins, blocks, b, true);
    else
        bins_insert(&bins, blocks, b, true);
    inside[b] = !inside[b];
}

static void check_pick(void) {
    uint64_t granules = any_of(1, MOST_GRANULES, 64, 66);
    block_index picked = bins_pick(&bins, blocks, granules);
    assert(picked <= BLOCKS);
    assert(!picked || (inside[picked] && block_granules(&blocks[picked]) >= granules));
    for (block_index b = 1; b <= BLOCKS; b++) /* only the request's own bin may be given up */
        assert(picked || !inside[b] || bin_of_block(b) <= bin_of(granules));
}

void prove(void) {
    bins = no_blocks;
    for (block_index b = 1; b <= BLOCKS; b++) {
        inside[b] = false;
        /* The few: some of one bin and some of the next, at a few places. */
        uint64_t place = any_of(1, (UINT64_C(1) << 31) - 1, 1, 3);
        uint64_t granules = any_of(1, MOST_GRANULES, 65, 66);
        blocks[b] = (struct block){.tagged = place << 16, .last = (uint32_t)(granules - 1)};
    }
    for (unsigned i = 0; i < STEPS; i++) {
        step();
        for (block_index b = 1; b <= BLOCKS; b++)
            check_bin(bin_of_block(b));
    }
    check_pick();
}
