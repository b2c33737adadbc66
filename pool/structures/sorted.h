/*
 * Free blocks in exact order: by zone, then size, then address.
 *
 * A treap (R. Seidel, C. Aragon, "Randomized search trees", 1996) whose links are the `before` and
 * `after` of the block records, and whose priorities are hashes of the blocks' addresses. Policies
 * that promise the smallest block that fits, lowest in address among equals, use it instead of
 * bins. O(log blocks) expected. The pool's lock guards it. The functions return 0 if there is no
 * such block.
 */
#ifndef BFC_POOL_SORTED_H
#define BFC_POOL_SORTED_H

#include "pool/structures/block.h"

/* Whether block a comes before block b in the order of zone, size and address. */
bool sorted_precede(const struct block *a, const struct block *b);

void sorted_insert(block_index *root, struct block *blocks, block_index b);
void sorted_remove(block_index *root, struct block *blocks, block_index b);

/* Returns the smallest block of the zone that has at least `granules`; 0: there is none. */
block_index sorted_find(block_index root, const struct block *blocks, enum block_zone zone,
                        uint64_t granules);

/* Returns the block of the same zone that comes after b; 0: there is none. */
block_index sorted_next(block_index root, const struct block *blocks, block_index b);

/* Returns the largest block of the zone; 0: there is none. */
block_index sorted_largest(block_index root, const struct block *blocks, enum block_zone zone);

/* Returns the block of the same zone that comes before b; 0: there is none. */
block_index sorted_previous(block_index root, const struct block *blocks, block_index b);

#endif
