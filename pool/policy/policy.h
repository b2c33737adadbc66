/*
 * Policies: the differences between `bfc`, `tf` and `pytorch`, as data and a few small functions.
 * The rules come from openxla/xla's bfc_allocator for `tf`, and from PyTorch's CUDACachingAllocator
 * for `pytorch`; docs/tuning.md describes both.
 *
 * Everything here is called under the pool's lock. Sizes are in bytes.
 */
#ifndef BFC_POOL_POLICY_H
#define BFC_POOL_POLICY_H

#include "pool/blocks/pool_state.h"

/* Policy pytorch serves blocks of at most this size from small segments of their own. */
#define PYTORCH_SMALL (1 * MIB)

void policy_make(struct bfc_pool *pool);

/* Is more reserved than what the program has had in use suggests? */
bool policy_has_surplus(const struct bfc_pool *pool);

/* May idle regions be merged, if there are enough of them (surplus.c)? */
bool policy_may_merge(const struct bfc_pool *pool);

/* Notes whether bfc_pool_release_surplus should be called; to be called when the pool has grown. */
void policy_note_surplus(struct bfc_pool *pool);

/* Returns what may be reserved for what was in use at most. */
uint64_t policy_allowed(const struct bfc_pool *pool);

/* Updates the rules that depend on whether regions are set apart, small blocks have regions of
 * their own, or allocations are watched. */
void policy_set_plain(struct bfc_pool *pool);

/* Gives blocks of at most `most` bytes regions of their own from now on. Has no effect where free
 * blocks are sorted. */
void policy_part_small(struct bfc_pool *pool, uint64_t most);

/* Sets how many more allocations are watched (struct rules); each of them takes twice as long. Has
 * no effect where free blocks are sorted. */
void policy_watch(struct bfc_pool *pool, uint64_t allocations);

/* Returns the size of the block for a request: at least `bytes`, in whole granules. */
uint64_t policy_round(const struct bfc_pool *pool, uint64_t bytes);

/* Returns the zone whose regions serve blocks of this size. */
enum block_zone policy_zone(const struct bfc_pool *pool, uint64_t size);

/* Whether a request of `size` may take the smallest free block that is large enough. */
bool policy_fits(const struct bfc_pool *pool, uint64_t size, uint64_t block);

/* Whether a block of `block` bytes should be split for a request of `size`. */
bool policy_splits(const struct bfc_pool *pool, uint64_t size, uint64_t block);

#endif
