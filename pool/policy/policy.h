/*
 * Policies: what differs between `bfc`, `tf` and `pytorch`, as data and a few small functions over
 * the pool's one mechanism. Sources of the rules: openxla/xla's bfc_allocator for `tf`, PyTorch's
 * CUDACachingAllocator for `pytorch`; docs/tuning.md describes both.
 *
 * Everything here is called under the pool's lock. Sizes are in bytes.
 */
#ifndef BFC_POOL_POLICY_H
#define BFC_POOL_POLICY_H

#include "pool/blocks/state.h"

/* Up to this size pytorch serves blocks from small segments of their own. */
#define PYTORCH_SMALL (1 * MIB)

/* The least multiple of `step` that is not below `bytes`, which is far from overflow. */
static inline uint64_t policy_round_to(uint64_t bytes, uint64_t step) {
    return (bytes + step - 1) / step * step;
}

void policy_make(struct bfc_pool *pool);

/* Sets what depends on whether regions are set apart or for small blocks, or pages watched. */
void policy_set_plain(struct bfc_pool *pool);

/* From now on blocks up to this size get regions of their own, unless free blocks are sorted. */
void policy_part_small(struct bfc_pool *pool, uint64_t most);

/* So many more allocations are watched (rules.h), unless free blocks are sorted: they take twice as
 * long. */
void policy_watch(struct bfc_pool *pool, uint64_t allocations);

/* The block size for a request, at least `bytes`, in whole granules. */
uint64_t policy_round(const struct bfc_pool *pool, uint64_t bytes);

/* The zone whose regions serve blocks of this size. */
enum block_zone policy_zone(const struct bfc_pool *pool, uint64_t size);

/* May a request of `size` take the smallest free block that is large enough? */
bool policy_fits(const struct bfc_pool *pool, uint64_t size, uint64_t block);

/* Is the block that a request of `size` gets split? */
bool policy_splits(const struct bfc_pool *pool, uint64_t size, uint64_t block);

#endif
