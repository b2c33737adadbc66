/*
 * Free blocks in exact order: by zone, then size, then address.
 *
 * A treap (R. Seidel, C. Aragon, "Randomized search trees", 1996) whose links are the two words
 * that a binned block has for its list, and whose priorities are hashes of the blocks' addresses.
 * Policies that promise the smallest block that fits, lowest in address among equals, use it
 * instead of bins. O(log blocks) expected. The pool's lock guards it.
 */
#ifndef BFC_POOL_SORTED_H
#define BFC_POOL_SORTED_H

#include "pool/structures/block.h"

void sorted_insert(block_index *root, struct block *blocks, block_index b);
void sorted_remove(block_index *root, struct block *blocks, block_index b);

/* Replaces `from` by its copy `to`. */
void sorted_replace(block_index *root, struct block *blocks, block_index from, block_index to);

/* The first block of the zone that has enough granules, or 0. */
block_index sorted_find(block_index root, const struct block *blocks, enum block_zone zone,
                        uint64_t granules);

/* The block of its zone that comes after b, or 0. */
block_index sorted_next(block_index root, const struct block *blocks, block_index b);

/* The last block of the zone, or 0: its largest. */
block_index sorted_largest(block_index root, const struct block *blocks, enum block_zone zone);

/* The block of its zone that comes before b, or 0. */
block_index sorted_previous(block_index root, const struct block *blocks, block_index b);

/* The last block of all, or 0: the largest where all are of one zone. */
block_index sorted_last(block_index root, const struct block *blocks);

#endif
