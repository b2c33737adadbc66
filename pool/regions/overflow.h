/* Overflow regions: memory for the blocks that have no place in a planned region. One such region
 * should hold them all, as large as the most that these blocks took at one time. Called under the
 * lock. */
#ifndef BFC_POOL_OVERFLOW_H
#define BFC_POOL_OVERFLOW_H

#include "pool/blocks/state.h"

/*
 * Returns the size of the next region, for a block of `size` bytes, where the policy wants `bytes`.
 * That is `bytes` unless growth is `double`, there is a planned region, and
 * bfc_pool_gather_overflow has found that overflow blocks need one larger region; then it is the
 * most that these blocks ever took at one time. Each call measures what they take now, and notes
 * the highest value. O(blocks of overflow regions).
 */
uint64_t overflow_growth(struct bfc_pool *pool, uint64_t size, uint64_t bytes);

/* Returns true if one overflow region is as large as the most that overflow blocks took at one
 * time. Sets `*count` to the number of overflow regions. */
bool overflow_is_gathered(const struct bfc_pool *pool, unsigned *count);

/* Is there a planned region? Others that are added then are overflow regions. */
bool overflow_is_possible(const struct bfc_pool *pool);

#endif
