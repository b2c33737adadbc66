/*
 * Memory beside a plan's region, for what the plan has no place for: one region, as large as all
 * that lay there at a time. Called under the lock.
 */
#ifndef BFC_POOL_OVERFLOW_H
#define BFC_POOL_OVERFLOW_H

#include "pool/blocks/state.h"

/*
 * How large the next region is, for a block of `size` bytes, where the policy wants `bytes`: after
 * bfc_pool_gather_overflow as large as all that was ever wanted beside a planned region at a time,
 * which is looked up in the regions there, and noted. O(their blocks).
 */
uint64_t overflow_growth(struct bfc_pool *pool, uint64_t size, uint64_t bytes);

/* Whether one region beside is as large as all that was ever wanted there; and how many there are.
 */
bool overflow_is_gathered(const struct bfc_pool *pool, unsigned *count);

/* The region that starts there was just taken in: notes whether it lies beside a planned one. */
void overflow_note(struct bfc_pool *pool, bfc_addr start);

#endif
