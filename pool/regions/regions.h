/* What becomes of an allocation that finds nothing, and of idle regions. Called under the lock,
 * which is dropped around every call of the upstream. */
#ifndef BFC_POOL_REGIONS_H
#define BFC_POOL_REGIONS_H

#include "pool/blocks/pool_state.h"

/* Returns the ready block that fills the region. 0: there is none, or the region is held or of
 * pages. */
block_index region_idle_block(const struct bfc_pool *pool, const struct region *region);
/* Returns the largest idle region; 0: there is none. With `apart` it may be one that is set apart.
 */
region_index regions_largest_idle(const struct bfc_pool *pool, bool apart);
/* Gives an idle region back. Returns its size; 0: the upstream did not take it, and the region is
 * the pool's as before. */
uint64_t region_release(struct bfc_pool *pool, region_index r);
/* Gives idle regions back, the largest first, until at least `bytes` have gone or the upstream
 * refuses one. Returns how many bytes went. */
uint64_t regions_release(struct bfc_pool *pool, uint64_t bytes);
uint64_t regions_releasable(const struct bfc_pool *pool);
/* Returns the first block of a region without pages in which no block is live or awaited; otherwise
 * 0. */
block_index region_freed_block(const struct bfc_pool *pool, const struct region *region);
/* Grows the pool for the request, and serves the request. Grows by pages where the pool has them;
 * by a region where it has none, or where one of the page calls fails for another reason than a
 * lack of memory. */
bool regions_grow(struct bfc_pool *pool, const struct request *request, enum bfc_status *status);
/* Adds a planned region of exactly `bytes` bytes, if the limit and the device allow it. The caller
 * holds growth_lock. */
enum bfc_status regions_add_planned(struct bfc_pool *pool, uint64_t bytes, bfc_addr *start);
/* Gives every region back at the end of the pool. */
void regions_end(struct bfc_pool *pool);

/* Serves an allocation for which no free block fits. */
enum bfc_status serve_miss(struct bfc_pool *pool, const struct request *request);

/* Makes every awaited block ready that can be by now, and takes a free block for the request. */
bool take_settled(struct bfc_pool *pool, const struct request *request);

/* Tries the last resorts of the policy. True: the request was served. `released`: the pool's
 * release_calls when the miss began. Does nothing unless *status is BFC_OUT_OF_MEMORY. */
bool last_resorts(struct bfc_pool *pool, const struct request *request, uint64_t released,
                  enum bfc_status *status);

void idle_collect(struct bfc_pool *pool);
/* Takes the step RUNG_RELEASE_LARGE for a request of `size`. False: not enough memory went back,
 * though some may have. */
bool idle_release_large(struct bfc_pool *pool, uint64_t size);

/* Opens every region to all allocations. False: no region was set apart. */
bool apart_end(struct bfc_pool *pool);

/* With BFC_ALLOCATE_APART, serves the request from a ready block of a region that is set apart from
 * the others. The region stays set apart. False: no such block has room. */
bool apart_spare(struct bfc_pool *pool, const struct request *request);

/* Takes the request from a planned region even if the policy refuses its blocks. Without a plan,
 * that memory would be in regions whose blocks the policy accepts. Looks at all blocks of these
 * regions. */
bool apart_take(struct bfc_pool *pool, const struct request *request);

/* Asks the upstream which fences are complete by now, and notes the answer. */
void wait_poll(struct bfc_pool *pool);

/* Returns the upstream's clock in nanoseconds; 0: the upstream has none. */
uint64_t wait_clock(const struct bfc_pool *pool);

/* Waits for one fence. Returns how many nanoseconds that took; UINT64_MAX: the fence is not
 * complete, although the wait is over. */
uint64_t wait_until_complete(struct bfc_pool *pool, bfc_fence fence, uint64_t timeout_ns);

/* Waits until this thread or another makes an awaited block ready, but no longer than `timeout_ns`.
 * With 0, only makes those awaited blocks ready that can be at once. */
void wait_for_awaited_block(struct bfc_pool *pool, uint64_t timeout_ns);

/* Waits for the oldest fences that free enough memory, and takes that for the request. Waits again
 * if another thread takes it first. False: the time is up, or no fence frees enough. */
bool wait_and_take(struct bfc_pool *pool, const struct request *request, uint64_t timeout_ns);

#endif
