/*
 * Bins: free blocks by size.
 *
 * Bins are 1 granule wide below 2^BIN_BITS granules, and from there on as many to an octave; they
 * reach to 2^32 granules. Two levels of bitmaps find the next bin that holds a block. A bin is a
 * doubly linked list; a block that comes in becomes its first if it is lower in address than the
 * first, and else its second. That hint of an order, and looking at some bins for the lowest first
 * block, pack nearly as well as a full order (docs/pool-experiments.md) and cost no search. Each
 * bin tells where its first block lies, so that looking at it does not touch the block. All
 * operations are O(1) but for bins_search.
 *
 * Where a policy wants an exact order, `is_sorted` is set and one treap (sorted.h) stands for the
 * lists; then bins_next, bins_search and bins_pick are not for use.
 */
#ifndef BFC_POOL_BINS_H
#define BFC_POOL_BINS_H

#include "pool/block.h"
#include "pool/sorted.h"

#define BIN_BITS 5 /* bins an octave: 32 */
#define BIN_COUNT ((34 - BIN_BITS) << BIN_BITS)
#define BIN_WINDOW 4    /* the bins after it of whose first blocks the lowest is taken... */
#define CLOSE_FIT 16384 /* ...but one for requests above so many granules, 8 MiB as a rule */
#define BIN_WORDS ((BIN_COUNT + 63) / 64)

/* What is known of the first block of a bin: its index, and above that where it starts, in units of
 * 64 KiB, so that of two heads the lesser is of the lower block. */
typedef uint64_t bin_head;
#define NO_HEAD ((bin_head)UINT32_MAX << 32)

struct bins {
    bool is_sorted;
    block_index root;      /* of the treap, if is_sorted */
    uint64_t words_in_use; /* bit w: words[w] is not 0 */
    uint64_t words[BIN_WORDS];
    bin_head heads[BIN_COUNT + BIN_WINDOW]; /* those from BIN_COUNT on are always empty */
};

_Static_assert(BIN_WORDS < 64, "one word tells which words are in use");
_Static_assert(BIN_COUNT / 64 < BIN_WORDS, "bins_next may be asked from BIN_COUNT on");

static inline unsigned bin_of(uint64_t granules) {
    unsigned octave = 63u - (unsigned)__builtin_clzll(granules | (1u << BIN_BITS));
    unsigned step = octave - BIN_BITS;
    return (step << BIN_BITS) + (unsigned)(granules >> step);
}

/* Addresses have 47 or 48 bits, as a rule; those that have more are only compared less well. */
static inline bin_head head_of(const struct block *blocks, block_index b) {
    return ((blocks[b].tagged << 16) & ((bin_head)INT32_MAX << 32)) | b;
}

static inline void bins_open(struct bins *bins, bool is_sorted) {
    bins->is_sorted = is_sorted;
    for (unsigned bin = 0; bin < BIN_COUNT + BIN_WINDOW; bin++)
        bins->heads[bin] = NO_HEAD;
}

/* The first bin from `bin` on, which is at most BIN_COUNT, that holds a block; or BIN_COUNT. */
static inline unsigned bins_next(const struct bins *bins, unsigned bin) {
    unsigned w = bin / 64;
    uint64_t word = bins->words[w] >> (bin % 64);
    if (word)
        return bin + (unsigned)__builtin_ctzll(word);
    uint64_t later = bins->words_in_use >> (w + 1);
    if (!later)
        return BIN_COUNT;
    w += 1 + (unsigned)__builtin_ctzll(later);
    return w * 64 + (unsigned)__builtin_ctzll(bins->words[w]);
}

static inline void bins_put(struct bins *bins, struct block *blocks, block_index b, unsigned bin) {
    bin_head head = bins->heads[bin], added = head_of(blocks, b);
    block_index first = (block_index)head;
    blocks[b].bin = bin;
    if (added < head) {
        blocks[b].before = 0;
        blocks[b].after = first;
        blocks[first].before = b; /* record 0 takes what is for none */
        bins->heads[bin] = added;
        bins->words[bin / 64] |= UINT64_C(1) << (bin % 64);
        bins->words_in_use |= UINT64_C(1) << (bin / 64);
    } else {
        block_index second = blocks[first].after;
        blocks[b].before = first;
        blocks[b].after = second;
        blocks[first].after = b;
        blocks[second].before = b;
    }
}

static inline void bins_empty(struct bins *bins, unsigned bin) {
    bins->heads[bin] = NO_HEAD;
    uint64_t word = bins->words[bin / 64] & ~(UINT64_C(1) << (bin % 64));
    bins->words[bin / 64] = word;
    bins->words_in_use &= ~((uint64_t)!word << (bin / 64));
}

/* Takes b out of its bin. */
static inline void bins_take(struct bins *bins, struct block *blocks, block_index b) {
    block_index before = blocks[b].before, after = blocks[b].after;
    blocks[after].before = before;
    if (before)
        blocks[before].after = after;
    else if (after)
        bins->heads[blocks[b].bin] = head_of(blocks, after);
    else
        bins_empty(bins, blocks[b].bin);
}

/*
 * Of the following, `plain` is true where the caller knows that is_sorted is not set, for the
 * compiler to see.
 */

static inline void bins_insert(struct bins *bins, struct block *blocks, block_index b, bool plain) {
    if (!plain && bins->is_sorted)
        sorted_insert(&bins->root, blocks, b);
    else
        bins_put(bins, blocks, b, bin_of(block_granules(&blocks[b])));
}

static inline void bins_remove(struct bins *bins, struct block *blocks, block_index b, bool plain) {
    if (!plain && bins->is_sorted)
        sorted_remove(&bins->root, blocks, b);
    else
        bins_take(bins, blocks, b);
}

/* To be called before b, which is in a bin, changes its start or size. */
static inline void bins_begin_resize(struct bins *bins, struct block *blocks, block_index b,
                                     bool plain) {
    if (!plain && bins->is_sorted)
        sorted_remove(&bins->root, blocks, b);
}

/* A block that is still of its old bin, as large ones often are, keeps its place there. */
static inline void bins_end_resize(struct bins *bins, struct block *blocks, block_index b,
                                   bool plain) {
    if (!plain && bins->is_sorted) {
        sorted_insert(&bins->root, blocks, b);
        return;
    }
    unsigned bin = bin_of(block_granules(&blocks[b]));
    if (bin != blocks[b].bin) {
        bins_take(bins, blocks, b);
        bins_put(bins, blocks, b, bin);
    } else if (!blocks[b].before) {
        bins->heads[bin] = head_of(blocks, b);
    }
}

/* Puts `to` where `from` is, of which it is a copy. */
static inline void bins_replace(struct bins *bins, struct block *blocks, block_index from,
                                block_index to) {
    if (bins->is_sorted) {
        sorted_replace(&bins->root, blocks, from, to);
        return;
    }
    block_index before = blocks[from].before, after = blocks[from].after;
    blocks[after].before = to;
    if (before)
        blocks[before].after = to;
    else
        bins->heads[blocks[to].bin] = head_of(blocks, to);
}

/* The first block of the request's own bin that has enough granules, or 0: not O(1). */
static inline block_index bins_search(const struct bins *bins, const struct block *blocks,
                                      uint64_t granules) {
    block_index b = (block_index)bins->heads[bin_of(granules)];
    while (b && block_granules(&blocks[b]) < granules)
        b = blocks[b].after;
    return b;
}

static inline bin_head lower_head(bin_head a, bin_head b) {
    return a < b ? a : b;
}

_Static_assert(BIN_WINDOW == 4, "lowest_head looks at so many");

/* The lowest of the heads of BIN_WINDOW bins; or the first, for a request that is to fit closely.
 */
static inline bin_head lowest_head(const struct bins *bins, unsigned bin, uint64_t granules) {
    const bin_head *heads = &bins->heads[bin];
    if (granules > CLOSE_FIT)
        return heads[0];
    return lower_head(lower_head(heads[0], heads[1]), lower_head(heads[2], heads[3]));
}

/*
 * A block of enough granules, or 0: the first block of the request's own bin if it fits exactly;
 * the lowest in address of that, if it is larger, and of the first blocks of the next few bins; or
 * else that of as many bins from the next one in use on.
 */
static inline block_index bins_pick(const struct bins *bins, const struct block *blocks,
                                    uint64_t granules) {
    unsigned bin = bin_of(granules);
    bin_head best = bins->heads[bin];
    uint64_t own = block_granules(&blocks[(block_index)best]); /* record 0 has 1 */
    if (own > granules)
        return (block_index)lower_head(best, lowest_head(bins, bin + 1, granules));
    if (own == granules && best != NO_HEAD)
        return (block_index)best;
    return (block_index)lowest_head(bins, bins_next(bins, bin + 1), granules);
}

#endif
