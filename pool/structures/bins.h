/*
 * Bins: lists of free blocks of similar size.
 *
 * Below 2^BIN_BITS granules there is a bin for each size; above, up to 2^32 granules, there are
 * 2^BIN_BITS bins for each power of two. Two levels of bitmaps find the next bin that holds a
 * block. A bin is a doubly linked list; an inserted block becomes the first if its address is lower
 * than the first's, and otherwise the second. So the blocks are only roughly in the order of their
 * addresses, and inserting needs no search. As searches also compare the first blocks of some bins,
 * a pool needs no more memory than with an exact order (with random sizes 1.054 times the live
 * bytes, against 1.055). Each bin stores the address of its first block, so that a comparison does
 * not read the block's record. All operations are O(1).
 *
 * Where a policy needs an exact order, `is_sorted` is set and one treap (sorted.h) replaces the
 * lists; then bins_next and bins_pick must not be called.
 */
#ifndef BFC_POOL_BINS_H
#define BFC_POOL_BINS_H

#include "pool/structures/block.h"
#include "pool/structures/sorted.h"

#define BIN_BITS 5 /* 32 bins for each power of two */
#define BIN_COUNT ((34 - BIN_BITS) << BIN_BITS)
/* how many adjacent bins' first blocks are compared, to find the one at the lowest address */
#define BIN_WINDOW 4
/* for a request of more granules than this (8 MiB), the first blocks of several bins are not
 * compared */
#define CLOSE_FIT 16384
#define BIN_WORDS ((BIN_COUNT + 63) / 64)

/* The first block of a bin: the block's index in the low half, its address in units of 64 KiB in
 * the high half. Thus of two such values the lower one belongs to the block at the lower
 * address. */
typedef uint64_t bin_head;
#define NO_HEAD ((bin_head)UINT32_MAX << 32)

struct bins {
    bool is_sorted;
    block_index root;      /* the root of the treap, if is_sorted */
    uint64_t words_in_use; /* bit w is set if words[w] is not 0 */
    uint64_t words[BIN_WORDS];
    /* the first block of each bin; the entries from BIN_COUNT on stay empty, so that the function
     * lowest_head may read beyond the last bin */
    bin_head heads[BIN_COUNT + BIN_WINDOW];
};

_Static_assert(BIN_WORDS < 64, "one word tells which words are in use");
_Static_assert(BIN_COUNT / 64 < BIN_WORDS, "bins_next may be asked from BIN_COUNT on");

static inline unsigned bin_of(uint64_t granules) {
    unsigned octave = 63u - (unsigned)__builtin_clzll(granules | (1u << BIN_BITS));
    unsigned step = octave - BIN_BITS;
    return (step << BIN_BITS) + (unsigned)(granules >> step);
}

/* Addresses usually have 47 or 48 bits. Bits above these are ignored: then the choice among the
 * first blocks of several bins is arbitrary, but still correct. */
static inline bin_head head_of(const struct block *blocks, block_index b) {
    return ((blocks[b].tagged << 16) & ((bin_head)INT32_MAX << 32)) | b;
}

static inline void bins_open(struct bins *bins, bool is_sorted) {
    bins->is_sorted = is_sorted;
    for (unsigned bin = 0; bin < BIN_COUNT + BIN_WINDOW; bin++)
        bins->heads[bin] = NO_HEAD;
}

/* Returns the first bin that is not empty, from `bin` on; BIN_COUNT: all of them are empty. `bin`
 * is at most BIN_COUNT. */
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
        /* if the list was empty, `first` is record 0, which belongs to no block and may be written
         * to */
        blocks[first].before = b;
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

/* Removes block b from the bin `bin`, of which it is the first block. */
static inline void bins_take_first(struct bins *bins, struct block *blocks, block_index b,
                                   unsigned bin) {
    block_index after = blocks[b].after;
    if (!after) {
        bins_empty(bins, bin);
        return;
    }
    blocks[after].before = 0;
    bins->heads[bin] = head_of(blocks, after);
}

static inline void bins_take(struct bins *bins, struct block *blocks, block_index b) {
    block_index before = blocks[b].before, after = blocks[b].after;
    if (!before) {
        bins_take_first(bins, blocks, b, blocks[b].bin);
        return;
    }
    blocks[before].after = after;
    /* if b was the last, `after` is record 0, which belongs to no block and may be written to */
    blocks[after].before = before;
}

/*
 * In the following functions `plain` is a compile-time constant. True means that the caller knows
 * `is_sorted` to be false, so the compiler drops the code for sorted blocks.
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

/* bins_begin_resize must be called before a block that is in a bin changes its start or size, and
 * bins_end_resize after the change. */
static inline void bins_begin_resize(struct bins *bins, struct block *blocks, block_index b,
                                     bool plain) {
    if (!plain && bins->is_sorted)
        sorted_remove(&bins->root, blocks, b);
}

/* A block whose new size belongs to the same bin as before stays at its place in the bin's list;
 * this is common for large blocks. */
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

/* Replaces record `from` in the bins by record `to`, which is a copy of `from`. */
static inline void bins_replace(struct bins *bins, struct block *blocks, block_index from,
                                block_index to) {
    if (bins->is_sorted) {
        sorted_remove(&bins->root, blocks, from);
        sorted_insert(&bins->root, blocks, to);
        return;
    }
    block_index before = blocks[from].before, after = blocks[from].after;
    blocks[after].before = to;
    if (before)
        blocks[before].after = to;
    else
        bins->heads[blocks[to].bin] = head_of(blocks, to);
}

/* Steps through all blocks that have at least this many granules: returns the first one if b is 0,
 * else the one after b; 0: there are no more. Unsorted blocks come from the largest bin to the
 * smallest, sorted ones from the smallest block to the largest. */
static inline block_index bins_walk(const struct bins *bins, const struct block *blocks,
                                    block_index b, uint64_t granules) {
    block_index next = 0;
    if (bins->is_sorted) {
        next = b ? sorted_next(bins->root, blocks, b)
                 : sorted_find(bins->root, blocks, ZONE_LARGE, granules);
        bool more_zones = !b || block_zone(&blocks[b]) == ZONE_LARGE;
        return next || !more_zones ? next : sorted_find(bins->root, blocks, ZONE_SMALL, granules);
    }
    unsigned bin = b ? blocks[b].bin : BIN_COUNT;
    next = b ? blocks[b].after : 0;
    for (;; next = blocks[next].after) {
        while (!next && bin > bin_of(granules))
            next = (block_index)bins->heads[--bin];
        if (!next || block_granules(&blocks[next]) >= granules)
            return next;
    }
}

static inline bin_head lower_head(bin_head a, bin_head b) {
    return a < b ? a : b;
}

_Static_assert(BIN_WINDOW == 4, "lowest_head compares four");

/* Compares the first blocks of BIN_WINDOW bins from `bin` on, and returns the entry of `heads` for
 * the one at the lowest address. For a request above CLOSE_FIT returns the entry for `bin` itself.
 */
static inline bin_head lowest_head(const struct bins *bins, unsigned bin, uint64_t granules) {
    const bin_head *heads = &bins->heads[bin];
    if (granules > CLOSE_FIT)
        return heads[0];
    return lower_head(lower_head(heads[0], heads[1]), lower_head(heads[2], heads[3]));
}

/*
 * Returns a block of at least `granules`; 0: there is none. Looks at the first block of the
 * request's own bin, and takes it if it fits exactly. If it is larger, compares it with the first
 * blocks of the next BIN_WINDOW bins, and takes the one at the lowest address. If it is too small,
 * takes the one at the lowest address among the first blocks of BIN_WINDOW bins, counted from the
 * next bin that is not empty. bins_pick_from is for a caller that knows the request's own bin.
 */
static inline block_index bins_pick_from(const struct bins *bins, const struct block *blocks,
                                         uint64_t granules, unsigned bin) {
    bin_head best = bins->heads[bin];
    /* the head of an empty bin leads to record 0, which has 1 granule */
    uint64_t own = block_granules(&blocks[(block_index)best]);
    if (own > granules)
        return (block_index)lower_head(best, lowest_head(bins, bin + 1, granules));
    if (own == granules && best != NO_HEAD)
        return (block_index)best;
    return (block_index)lowest_head(bins, bins_next(bins, bin + 1), granules);
}

static inline block_index bins_pick(const struct bins *bins, const struct block *blocks,
                                    uint64_t granules) {
    return bins_pick_from(bins, blocks, granules, bin_of(granules));
}

#endif
