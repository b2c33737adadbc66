/*
 * Waiting for the device. Called under the lock, which is dropped around every call of the
 * upstream.
 */
#ifndef BFC_POOL_WAIT_H
#define BFC_POOL_WAIT_H

#include "pool/blocks/state.h"

/* What the device has finished by now becomes known as complete. */
void wait_poll(struct bfc_pool *pool);

/* The upstream's clock in nanoseconds; 0 where it has none. */
uint64_t wait_clock(const struct bfc_pool *pool);

/* Waits for one fence; returns how many nanoseconds, or UINT64_MAX when the fence was not complete
 * after all. */
uint64_t wait_until_complete(struct bfc_pool *pool, bfc_fence fence, uint64_t timeout_ns);

/* Waits until another awaited block is ready, by whatever thread, or for so long: with 0 only those
 * become ready that can be. */
void wait_for_awaited_block(struct bfc_pool *pool, uint64_t timeout_ns);

/* Waits for the oldest fences that suffice, and takes what they free. When another thread takes it
 * first, waits again. False: the time is up, or no fence suffices. */
bool wait_and_take(struct bfc_pool *pool, const struct request *request, uint64_t timeout_ns);

#endif
