/*
 * Anchors: an ordered index over a few of the blocks, to find the one that holds an address.
 *
 * About one record in ANCHOR_GAP is an anchor, chosen by a hash of its index, and so is each
 * region's head. A treap over the anchors by address (R. Seidel, C. Aragon, "Randomized search
 * trees", 1996) finds the last one at or below an address, and a walk of about ANCHOR_GAP
 * neighbours from there finds the block: O(log blocks), expected, for interior pointers, while most
 * splits and merges do not touch the index at all. An anchor costs 24 bytes: it holds a copy of its
 * block's start, so that a search stays within the index.
 *
 * If the host has no memory for an anchor it is left out, and walks become longer.
 */
#ifndef BFC_POOL_ANCHOR_H
#define BFC_POOL_ANCHOR_H

#include "pool/structures/block.h"
#include "pool/structures/host.h"

#define ANCHOR_BITS 6
#define ANCHOR_GAP (1u << ANCHOR_BITS)

typedef uint32_t anchor_index;
typedef uint32_t region_index;

struct anchor {
    bfc_addr key; /* where the block starts; plus 1, but for a region's head, which comes first */
    block_index block;
    region_index region;
    anchor_index lower, higher; /* in the tree; of a vacant one, lower lists the vacant ones */
};

struct anchors {
    struct anchor *all; /* index 0 is none */
    uint32_t high;      /* all indices in use are below it */
    uint32_t count;
    bool refused; /* the host once had no memory for one */
    anchor_index vacant;
    anchor_index root;
    struct host_array memory;
};

/* Is this record an anchor whenever it is a block's? */
static inline bool is_anchor(block_index b) {
    return (uint32_t)(b * UINT32_C(0x9e3779b1)) >> (32 - ANCHOR_BITS) == 0;
}

bool anchors_open(struct anchors *anchors, uint64_t most_blocks);
void anchors_close(struct anchors *anchors);

/* Forgets all anchors, none of which is in use, and gives their memory back. */
void anchors_reset(struct anchors *anchors);

/* Makes the block an anchor. False: the host has no memory for it. */
bool anchors_add(struct anchors *anchors, const struct block *b, block_index index,
                 region_index region);

/* Removes the block, whose start must not have changed. Nothing happens if it is not an anchor. */
void anchors_remove(struct anchors *anchors, const struct block *b);

/* If the block that started at `from` is an anchor, it starts at `to` now; no anchor lies in
 * between. */
void anchors_shift(struct anchors *anchors, bfc_addr from, bfc_addr to);

/* Returns the block's anchor, or 0. */
anchor_index anchors_of(const struct anchors *anchors, const struct block *b);

/* The last anchor that starts at or below `address`, or 0. */
anchor_index anchors_find(const struct anchors *anchors, bfc_addr address);

/* Calls `visit` for each region's head in address order, until it returns false. */
bool anchors_visit(const struct anchors *anchors, const struct block *blocks,
                   bool (*visit)(void *context, const struct anchor *head), void *context);

#endif
