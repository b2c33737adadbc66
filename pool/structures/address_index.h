/*
 * The address index: an ordered index over a few of the blocks, to find the block that holds an
 * address.
 *
 * About one block in INDEX_GAP has a node in the index, chosen by a hash of its record's index, and
 * so has each region's head. A treap over the nodes by address (R. Seidel, C. Aragon, "Randomized
 * search trees", 1996) finds the last one at or below an address, and a walk of about INDEX_GAP
 * neighbours from there finds the block: O(log blocks), expected, for interior pointers, while most
 * splits and merges do not touch the index at all. A node costs 24 bytes: it holds a copy of its
 * block's start, so that a search stays within the index.
 *
 * If the host has no memory for a node it is left out, and walks become longer.
 */
#ifndef BFC_POOL_ADDRESS_INDEX_H
#define BFC_POOL_ADDRESS_INDEX_H

#include "pool/structures/block.h"
#include "pool/structures/host.h"

#define INDEX_GAP_BITS 6
#define INDEX_GAP (1u << INDEX_GAP_BITS)

typedef uint32_t node_index;
typedef uint32_t region_index;

struct index_node {
    /* the start of the node's block, plus 1; for the head of a region, the region's start */
    bfc_addr key;
    block_index block;
    region_index region;
    node_index lower,
        higher; /* children in the tree; `lower` of a vacant node is the next vacant node */
};

struct address_index {
    struct index_node *nodes; /* index 0 means no node */
    uint32_t high;            /* all indices that were ever used are below this */
    uint32_t count;
    bool refused; /* whether the host once had no memory for a node */
    node_index vacant;
    node_index root;
    struct host_array memory;
};

/* Whether a block with this record has a node in the index. */
static inline bool is_indexed(block_index b) {
    return (uint32_t)(b * UINT32_C(0x9e3779b1)) >> (32 - INDEX_GAP_BITS) == 0;
}

bool address_index_open(struct address_index *index, uint64_t most_blocks);

/* Gives the memory of all nodes back; none may be in use. */
void address_index_reset(struct address_index *index);

/* Adds a node for the block. False: the host has no memory for it. */
bool address_index_add(struct address_index *index, const struct block *b, block_index record,
                       region_index region);

/* Removes the node of the block, whose start must not have changed, if it has one. */
void address_index_remove(struct address_index *index, const struct block *b);

/* If the block that started at `from` has a node, its key becomes that of `to`. No other node may
 * lie between the two addresses. */
void address_index_shift(struct address_index *index, bfc_addr from, bfc_addr to);

/* Returns the last node that starts at or below `address`, or 0. */
node_index address_index_find(const struct address_index *index, bfc_addr address);

/* Returns the first node whose block starts at or above `address`, or 0. From the end of a region,
 * that is the head of the next region. */
node_index address_index_from(const struct address_index *index, bfc_addr address);

#endif
