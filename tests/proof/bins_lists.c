/*
 * The lists of the bins and their bitmaps: from empty bins, any STEPS insertions and removals of
 * BLOCKS blocks of any sizes and addresses. After each, in every bin that a block has: both bitmaps
 * tell whether it is empty; its list, read from either end, holds just the blocks that were put in
 * and not taken out; and what bins_pick answers is one of them and long enough.
 */
#include "pool/bins.h"
#include "tests/proof/prover.h"

#ifndef BLOCKS
#define BLOCKS 3
#endif
#ifndef STEPS
#define STEPS 4
#endif

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
    bool marked = bins.words[bin / 64] >> (bin % 64) & 1;
    bool word_marked = bins.words_in_use >> (bin / 64) & 1;
    assert(marked == (there != 0));
    assert(marked == (bins.first[bin] != 0));
    assert(word_marked == (bins.words[bin / 64] != 0));
    block_index before = 0, b = bins.first[bin];
    for (unsigned i = 0; i < BLOCKS && b; i++) {
        assert(b <= BLOCKS && inside[b] && bin_of_block(b) == bin);
        assert(blocks[b].before == before);
        found++;
        before = b;
        b = blocks[b].after;
    }
    assert(!b && found == there);
}

static void step(void) {
    block_index b = (block_index)any_between(1, BLOCKS);
    if (inside[b])
        bins_remove(&bins, blocks, b);
    else
        bins_insert(&bins, blocks, b);
    inside[b] = !inside[b];
}

static void check_pick(void) {
    uint64_t granules = any_between(1, LARGEST_BLOCK >> GRANULE_BITS);
    block_index picked = bins_pick(&bins, blocks, granules);
    assert(picked <= BLOCKS);
    assert(!picked || (inside[picked] && block_granules(&blocks[picked]) >= granules));
    for (block_index b = 1; b <= BLOCKS; b++) /* only the request's own bin may be given up */
        assert(picked || !inside[b] || bin_of_block(b) <= bin_of(granules));
}

static void prove(void) {
    bins = (struct bins){0};
    for (block_index b = 1; b <= BLOCKS; b++) {
        inside[b] = false;
        blocks[b] = (struct block){.tagged = any_value() & ~BLOCK_TAG_MASK,
                                   .last = (uint32_t)any_value()};
    }
    for (unsigned i = 0; i < STEPS; i++) {
        step();
        for (block_index b = 1; b <= BLOCKS; b++)
            check_bin(bin_of_block(b));
    }
    check_pick();
}
