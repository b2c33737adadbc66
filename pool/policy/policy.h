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

/* Policy pytorch serves blocks of at most this size from regions for small blocks only. */
#define PYTORCH_SMALL (1 * MIB)

void policy_make(struct bfc_pool *pool);

/* Whether more is reserved than the most that was ever in use justifies, so that idle regions
 * should go back. */
bool policy_has_surplus(const struct bfc_pool *pool);

/* Whether idle regions may be merged into a larger one now, if there are enough of them
 * (surplus.c). */
bool policy_may_merge(const struct bfc_pool *pool);

/* Recomputes has_surplus, which tells frees to call bfc_pool_begin_surplus. To be called when the
 * pool has grown. */
void policy_note_surplus(struct bfc_pool *pool);

/* Returns how many bytes a pool should have reserved at most: the most that
 * was ever in use, and a tenth more. */
uint64_t policy_allowed(const struct bfc_pool *pool);

/* Recomputes the rules (struct rules) that depend on whether regions are set apart, whether small
 * blocks have regions of their own, and whether the pool looks for pages that are too large. To be
 * called when one of these changes. */
void policy_set_plain(struct bfc_pool *pool);

/* From now on serves blocks of at most `most` bytes from regions for small blocks only. Has no
 * effect in a pool that keeps free blocks sorted by size and address. */
void policy_part_small(struct bfc_pool *pool, uint64_t most);

/* Sets for how many more allocations the pool first replaces ready pages that are much too large
 * for the request (rules.watched). This makes each of these allocations take about twice as long.
 * Has no effect where free blocks are sorted (rules.exact). */
void policy_watch(struct bfc_pool *pool, uint64_t allocations);

/* Returns the size in bytes of the block for a request of `bytes`, rounded up as the policy
 * wants. */
uint64_t policy_round(const struct bfc_pool *pool, uint64_t bytes);

/* Returns the zone whose regions serve blocks of this size. */
enum block_zone policy_zone(const struct bfc_pool *pool, uint64_t size);

/* Whether the policy lets a request of `size` bytes take a free block of `block` bytes, which is
 * large enough. */
bool policy_fits(const struct bfc_pool *pool, uint64_t size, uint64_t block);

/* Whether a free block of `block` bytes is split when a request of `size` bytes takes it. */
bool policy_splits(const struct bfc_pool *pool, uint64_t size, uint64_t block);

#endif
