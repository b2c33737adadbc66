/* What the pool does when an allocation finds no free block, and what it does with idle regions.
 * All functions are called under the lock, and drop it around every call of the upstream. */
#ifndef BFC_POOL_REGIONS_H
#define BFC_POOL_REGIONS_H

#include "pool/blocks/pool_state.h"

/* Returns the ready block that fills the whole region. 0: there is none, the region must not be
 * given back (held), or the region consists of pages. */
block_index region_idle_block(const struct bfc_pool *pool, const struct region *region);
/* Returns the largest region that one ready block fills; 0: there is none. Only with `apart` may it
 * be a region that is set apart. */
region_index regions_largest_idle(const struct bfc_pool *pool, bool apart);
/* Gives a region that one ready block fills back to the upstream. Returns its size in bytes; 0: the
 * upstream did not take it, and it is the pool's as before. */
uint64_t region_release(struct bfc_pool *pool, region_index r);
/* Gives regions that one ready block fills back, the largest first, until at least `bytes` bytes
 * have gone back or the upstream refuses one. Returns how many bytes went back. */
uint64_t regions_release(struct bfc_pool *pool, uint64_t bytes);
uint64_t regions_releasable(const struct bfc_pool *pool);
/* Returns the first block of the region if no block of it is live or awaited and the region does
 * not consist of pages; otherwise 0. */
block_index region_freed_block(const struct bfc_pool *pool, const struct region *region);
/* Makes the pool grow for the request, and serves it. A pool with pages grows by pages. It grows by
 * a region, as any other pool does, if it may make and move no pages now, or if a page call fails
 * for another reason than a lack of memory. False: `*status` says why the request was not served.
 */
bool regions_grow(struct bfc_pool *pool, const struct request *request, enum bfc_status *status);
/* Adds a region of exactly `bytes` bytes for a plan, if the limit and the device allow it. The
 * caller holds growth_lock. On success sets `*start`. */
enum bfc_status regions_add_planned(struct bfc_pool *pool, uint64_t bytes, bfc_addr *start);
/* Gives every region that is not of pages back to the upstream, when the pool ends. */
void regions_end(struct bfc_pool *pool);

/* Serves an allocation for which no free block fits. */
enum bfc_status serve_miss(struct bfc_pool *pool, const struct request *request);

/* Makes each block that was freed in the order of a stream ready if the stream has come to that
 * free by now, and serves the request from a free block. False: no free block has room. */
bool take_settled(struct bfc_pool *pool, const struct request *request);

/* Tries the last resorts of the policy in order (last_resorts.c). True: the request was served.
 * Does nothing unless *status is BFC_OUT_OF_MEMORY. `released`: the value of the counter
 * release_calls when the allocation began to grow the pool; if the counter has changed since, the
 * device is asked again. */
bool last_resorts(struct bfc_pool *pool, const struct request *request, uint64_t released,
                  enum bfc_status *status);

void idle_collect(struct bfc_pool *pool);
/* Gives back at least `size` bytes, and no fewer than max_split: one idle region if one is that
 * large, else several of at least max_split each. False: less went back, if anything. */
bool idle_release_large(struct bfc_pool *pool, uint64_t size);

/* Opens every region that is set apart to all allocations. False: there was none. */
bool apart_end(struct bfc_pool *pool);

/* With BFC_ALLOCATE_APART, serves the request from a ready block of a region that is set apart; the
 * region stays set apart. False: the flag is not set, or no such block has room. */
bool apart_spare(struct bfc_pool *pool, const struct request *request);

/* Serves the request from a region of a plan, even if the policy would refuse the region's blocks.
 * The policy must not make the allocation fail here: without the plan, the same memory would lie in
 * regions that the policy would have used. Looks at all blocks of these regions. False: none has
 * room. */
bool apart_take(struct bfc_pool *pool, const struct request *request);

/* Asks the upstream which fences are complete by now, and records the answer. */
void wait_poll(struct bfc_pool *pool);

/* Returns the time on the upstream's clock in nanoseconds; 0: the upstream has no clock. */
uint64_t wait_clock(const struct bfc_pool *pool);

/* Waits for `fence`, for `timeout_ns` at most. Returns how many nanoseconds that took; UINT64_MAX:
 * the fence is still not complete. */
uint64_t wait_until_complete(struct bfc_pool *pool, bfc_fence fence, uint64_t timeout_ns);

/* Waits, for `timeout_ns` at most, until this or another thread makes an awaited block ready. If
 * `timeout_ns` is 0, only makes those awaited blocks ready whose stream has come to their free
 * already. */
void wait_for_awaited_block(struct bfc_pool *pool, uint64_t timeout_ns);

/* Waits for the oldest fences that free enough memory for the request, and serves it. If another
 * thread takes the memory first, waits again. False: `timeout_ns` is over, or no fences free
 * enough. */
bool wait_and_take(struct bfc_pool *pool, const struct request *request, uint64_t timeout_ns);

#endif
