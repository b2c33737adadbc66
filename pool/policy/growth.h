/*
 * Growth: how large the next region is, by policy and BFC_GROWTH. A new rule of growth goes here.
 *
 * Everything here is called under the pool's lock. Sizes are in bytes.
 */
#ifndef BFC_POOL_GROWTH_H
#define BFC_POOL_GROWTH_H

#include "pool/blocks/internal.h"

/* Devices hand memory out in pages of this size: a region above half a page ends at a page's end,
 * because the rest of its last page would be lost to all. */
#define POLICY_PAGE (2 * MIB)

enum back_off { BACK_OFF_TO_SIZE, BACK_OFF_ABOVE_SIZE, BACK_OFF_NONE };

/* The next region for a request of `size`, before the limit and the device are considered, and what
 * to do when the device refuses it. Raises the step if the policy does so before it asks. */
uint64_t growth_next(struct bfc_pool *pool, uint64_t size);
enum back_off growth_back_off(const struct bfc_pool *pool, uint64_t size);

/* A region was reserved. */
void growth_reserved(struct bfc_pool *pool, uint64_t size);

#endif
