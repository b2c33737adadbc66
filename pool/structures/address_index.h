/*
 * The address index: an ordered index over a few of the blocks, to find the block that holds an
 * address.
 *
 * About one block in INDEX_GAP has a node in the index; a hash of the index of its record decides
 * which. Each region's head, the record before its first block, has a node as well. A treap over
 * the nodes by address (R. Seidel, C. Aragon, "Randomized search trees", 1996) finds the last node
 * at or below an address, and a walk of about INDEX_GAP neighbours from there finds the block. So
 * the block of any address is found in O(log blocks), expected, while most splits and merges do not
 * touch the index at all. A node costs 24 bytes: it holds a copy of its block's start, so that a
 * search need not read block records.
 *
 * If the host has no memory for a node, the node is left out, and the walk over neighbours becomes
 * longer.
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
    /* the address where the node's block starts, plus 1; of a region's head: the region's first
     * address, so that the head comes before the region's first block */
    bfc_addr key;
    block_index block;
    region_index region;
    node_index lower,
        /* the two subtrees, 0 if empty; a vacant node has the next vacant node in `lower` */
        higher;
};

struct address_index {
    struct index_node *nodes; /* the nodes; index 0 stands for no node */
    uint32_t high;            /* the lowest index that was never used */
    uint32_t count;
    bool refused; /* whether the host once had no memory for a node */
    node_index vacant;
    node_index root;
    struct host_array memory;
};

/* Whether a block whose record has this index gets a node in the address index. */
static inline bool is_indexed(block_index b) {
    return (uint32_t)(b * UINT32_C(0x9e3779b1)) >> (32 - INDEX_GAP_BITS) == 0;
}

bool address_index_open(struct address_index *index, uint64_t most_blocks);

/* Gives the memory of all nodes back to the operating system. The index must be empty. */
void address_index_reset(struct address_index *index);

/* Adds a node for block or head b, whose record is `record`. False: the host has no memory for the
 * node. */
bool address_index_add(struct address_index *index, const struct block *b, block_index record,
                       region_index region);

/* Removes the node of block or head b, if it has one. The start of b must be the same as when the
 * node was added. */
void address_index_remove(struct address_index *index, const struct block *b);

/* To be called when a block's start moves from the address `from` to the address `to`: updates the
 * key of the block's node, if it has one. No other node may lie between the two addresses. */
void address_index_shift(struct address_index *index, bfc_addr from, bfc_addr to);

/* Returns the last node whose block or head starts at or below `address`; 0: there is none. */
node_index address_index_find(const struct address_index *index, bfc_addr address);

/* Returns the first node whose block starts at or above `address`; 0: there is none. If `address`
 * is the end of a region, that is the head of the next region in the order of addresses. */
node_index address_index_from(const struct address_index *index, bfc_addr address);

#endif
