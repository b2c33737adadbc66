/*
 * Bins: free blocks by size.
 *
 * Bins are 1 granule wide below 32 granules, and from there on a 32nd of their octave: 928 bins
 * reach to 2^32 granules. Two levels of bitmaps find the next bin that holds a block. A bin is a
 * doubly linked list whose first block is usually the lowest in address: a block that comes in is
 * compared with the first, and when the first leaves, the lower of the next two takes its place.
 * That halfway order packs as well as a full one (docs/pool-experiments.md) and costs no search.
 * All operations are O(1) but for bins_search.
 *
 * Where a policy wants an exact order, `is_sorted` is set and one treap (sorted.h) stands for the
 * lists; then bins_next, bins_search and bins_pick are not for use.
 */
#ifndef BFC_POOL_BINS_H
#define BFC_POOL_BINS_H

#include "pool/block.h"
#include "pool/sorted.h"

#define BIN_BITS 5 /* bins an octave: 32 */
#define BIN_COUNT (((33 - BIN_BITS) << BIN_BITS) + (1 << BIN_BITS))
#define BIN_TRIES 3 /* blocks that are looked at in a request's own bin */
#define BIN_WORDS ((BIN_COUNT + 63) / 64)

struct bins {
    bool is_sorted;
    block_index root;      /* of the treap, if is_sorted */
    uint64_t words_in_use; /* bit w: words[w] is not 0 */
    uint64_t words[BIN_WORDS];
    block_index first[BIN_COUNT + 2]; /* the last two are always empty */
};

_Static_assert(BIN_WORDS <= 64, "one word tells which words are in use");

static inline unsigned bin_of(uint64_t granules) {
    if (granules < (1u << BIN_BITS))
        return (unsigned)granules;
    unsigned octave = 63u - (unsigned)__builtin_clzll(granules);
    unsigned step = octave - BIN_BITS;
    return (step << BIN_BITS) + (unsigned)(granules >> step);
}

/* The first bin from `bin` on that holds a block, or BIN_COUNT. */
static inline unsigned bins_next(const struct bins *bins, unsigned bin) {
    unsigned w = bin / 64;
    uint64_t word = w < BIN_WORDS ? bins->words[w] >> (bin % 64) : 0;
    if (word)
        return bin + (unsigned)__builtin_ctzll(word);
    uint64_t later = w + 1 < BIN_WORDS ? bins->words_in_use >> (w + 1) : 0;
    if (!later)
        return BIN_COUNT;
    w += 1 + (unsigned)__builtin_ctzll(later);
    return w * 64 + (unsigned)__builtin_ctzll(bins->words[w]);
}

/* Puts b before `place`, the first of its bin. */
static inline void bins_put_first(struct bins *bins, struct block *blocks, unsigned bin,
                                  block_index b, block_index place) {
    blocks[b].before = 0;
    blocks[b].after = place;
    blocks[place].before = b;
    bins->first[bin] = b;
}

static inline void bins_put_second(struct block *blocks, block_index b, block_index first) {
    block_index second = blocks[first].after;
    blocks[b].before = first;
    blocks[b].after = second;
    blocks[first].after = b;
    blocks[second].before = b; /* record 0 takes what is for none */
}

static inline void bins_insert(struct bins *bins, struct block *blocks, block_index b) {
    if (__builtin_expect(bins->is_sorted, 0)) {
        sorted_insert(&bins->root, blocks, b);
        return;
    }
    unsigned bin = bin_of(block_granules(&blocks[b]));
    block_index first = bins->first[bin];
    if (!first) {
        blocks[b].before = blocks[b].after = 0;
        bins->first[bin] = b;
        bins->words[bin / 64] |= UINT64_C(1) << (bin % 64);
        bins->words_in_use |= UINT64_C(1) << (bin / 64);
    } else if (blocks[b].tagged < blocks[first].tagged) {
        bins_put_first(bins, blocks, bin, b, first);
    } else {
        bins_put_second(blocks, b, first);
    }
}

/* Makes the lower of the first two the first: `second` follows `first`, which leads its bin. */
static inline void bins_lower_first(struct bins *bins, struct block *blocks, unsigned bin,
                                    block_index first) {
    block_index second = blocks[first].after;
    if (!second || blocks[first].tagged < blocks[second].tagged)
        return;
    block_index third = blocks[second].after;
    blocks[first].after = third;
    blocks[third].before = first;
    blocks[second].after = first;
    blocks[first].before = second;
    blocks[second].before = 0;
    bins->first[bin] = second;
}

static inline void bins_empty(struct bins *bins, unsigned bin) {
    bins->first[bin] = 0;
    bins->words[bin / 64] &= ~(UINT64_C(1) << (bin % 64));
    if (!bins->words[bin / 64])
        bins->words_in_use &= ~(UINT64_C(1) << (bin / 64));
}

static inline void bins_remove(struct bins *bins, struct block *blocks, block_index b) {
    if (__builtin_expect(bins->is_sorted, 0)) {
        sorted_remove(&bins->root, blocks, b);
        return;
    }
    block_index before = blocks[b].before, after = blocks[b].after;
    if (before) {
        blocks[before].after = after;
        blocks[after].before = before;
        return;
    }
    unsigned bin = bin_of(block_granules(&blocks[b]));
    if (!after) {
        bins_empty(bins, bin);
        return;
    }
    bins->first[bin] = after;
    blocks[after].before = 0;
    bins_lower_first(bins, blocks, bin, after);
}

/* Puts `to` where `from` is, which has the same size. */
static inline void bins_replace(struct bins *bins, struct block *blocks, block_index from,
                                block_index to) {
    if (__builtin_expect(bins->is_sorted, 0)) {
        sorted_replace(&bins->root, blocks, from, to);
        return;
    }
    block_index before = blocks[from].before, after = blocks[from].after;
    blocks[to].before = before;
    blocks[to].after = after;
    blocks[after].before = to;
    if (before)
        blocks[before].after = to;
    else
        bins->first[bin_of(block_granules(&blocks[from]))] = to;
}

/* The first of `most` blocks of one bin that has enough granules, or 0. */
static inline block_index bins_search(const struct bins *bins, const struct block *blocks,
                                      unsigned bin, uint64_t granules, uint64_t most) {
    block_index b = bins->first[bin];
    while (b && block_granules(&blocks[b]) < granules)
        b = --most ? blocks[b].after : 0;
    return b;
}

/*
 * A block of enough granules, or 0: from the request's own bin if one of its first few fits, else
 * from the next bin in use; and of the first there and the first of the bin after it, the lower in
 * address, unless the fit is exact.
 */
static inline block_index bins_pick(const struct bins *bins, const struct block *blocks,
                                    uint64_t granules) {
    unsigned bin = bin_of(granules);
    block_index b = bins_search(bins, blocks, bin, granules, BIN_TRIES);
    if (b && block_granules(&blocks[b]) == granules)
        return b;
    if (!b) {
        bin = bins_next(bins, bin + 1);
        b = bins->first[bin];
        if (!b)
            return 0;
    }
    block_index rival = bins->first[bin + 1];
    return rival && blocks[rival].tagged < blocks[b].tagged ? rival : b;
}

#endif
