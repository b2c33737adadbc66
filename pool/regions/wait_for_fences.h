/* Waits for the device. Called under the lock, which is dropped around every call of the
 * upstream. */
#ifndef BFC_POOL_WAIT_H
#define BFC_POOL_WAIT_H

#include "pool/blocks/state.h"

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
