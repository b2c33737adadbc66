/*
 * Policies: what differs between `bfc`, `tf` and `pytorch`, as data and a few small functions over
 * the pool's one mechanism. Sources of the rules: openxla/xla's bfc_allocator for `tf`, PyTorch's
 * CUDACachingAllocator for `pytorch`; docs/tuning.md describes both.
 *
 * Everything here is called under the pool's lock. Sizes are in bytes.
 */
#ifndef BFC_POOL_POLICY_H
#define BFC_POOL_POLICY_H

#include "pool/internal.h"

/* What devices give whole, for what has more than half of one: the rest of a region's last page
 * would be lost to all. */
#define POLICY_PAGE (2 * MIB)

enum back_off { BACK_OFF_TO_SIZE, BACK_OFF_ABOVE_SIZE, BACK_OFF_NONE };

void policy_make(struct bfc_pool *pool);

/* The block size for a request, at least `bytes`, in whole granules. */
uint64_t policy_round(const struct bfc_pool *pool, uint64_t bytes);

/* The zone whose regions serve blocks of this size. */
enum block_zone policy_zone(const struct bfc_pool *pool, uint64_t size);

/* May a request of `size` take the smallest free block that is large enough? */
bool policy_fits(const struct bfc_pool *pool, uint64_t size, uint64_t block);

/* Is the block that a request of `size` gets split? */
bool policy_splits(const struct bfc_pool *pool, uint64_t size, uint64_t block);

/* The next region for a request of `size`, before the limit and the device are considered, and what
 * to do when the device refuses it. Raises the step if the policy does so before it asks. */
uint64_t policy_growth(struct bfc_pool *pool, uint64_t size);
enum back_off policy_back_off(const struct bfc_pool *pool, uint64_t size);

/* A region was reserved. */
void policy_grown(struct bfc_pool *pool, uint64_t size);

#endif
