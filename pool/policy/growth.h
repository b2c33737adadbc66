/*
 * Growth: how large the next region is, by policy and BFC_GROWTH. A new rule of growth goes here.
 *
 * Everything here is called under the pool's lock. Sizes are in bytes.
 */
#ifndef BFC_POOL_GROWTH_H
#define BFC_POOL_GROWTH_H

#include "pool/blocks/state.h"

/* Devices hand memory out in pages of this size: a region above half a page ends at a page's end,
 * because the rest of its last page would be lost to all. */
#define POLICY_PAGE (2 * MIB)

enum back_off {
    BACK_OFF_TO_SIZE,
    BACK_OFF_ABOVE_SIZE,
    BACK_OFF_AT_ONCE, /* by one step to the size */
    BACK_OFF_NONE,
};

/*
 * A large region that is wholly free: whether the pool rather grows than cut a block of `size` from
 * it, which would keep all of it from the device's other users. It does where the region is many
 * times what is asked for and what the pool would grow by, and that costs little, or others have
 * asked for memory.
 */
bool growth_keeps(struct bfc_pool *pool, uint64_t size, uint64_t region);

/* The next region for a request of `size`, before the limit and the device are considered, and what
 * to do when the device refuses it. Raises the step if the policy does so before it asks.
 * `keeping`: so that another one stays whole. */
uint64_t growth_next(struct bfc_pool *pool, uint64_t size, bool keeping);
enum back_off growth_back_off(const struct bfc_pool *pool, uint64_t size, bool keeping);

/* A region was reserved; `to_keep`: so many bytes of it, so that another one stays whole. */
void growth_reserved(struct bfc_pool *pool, uint64_t size, uint64_t to_keep);

#endif
