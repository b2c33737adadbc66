/*
 * Growth: computes how large the next region is, from the policy and BFC_GROWTH. A new rule of
 * growth goes here.
 *
 * Everything here is called under the pool's lock. Sizes are in bytes.
 */
#ifndef BFC_POOL_GROWTH_H
#define BFC_POOL_GROWTH_H

#include "pool/policy/policy.h"

/* The driver takes memory from the device in pages of this size. A region above half a page ends at
 * a page's end, because nobody could use the rest of its last page. */
#define POLICY_PAGE (2 * MIB)

/* Returns what a region of so many bytes takes from the device: whole pages, unless it may share
 * one. */
static inline uint64_t growth_on_device(uint64_t bytes) {
    return bytes <= POLICY_PAGE / 2 ? bytes : policy_round_to(bytes, POLICY_PAGE);
}

enum back_off {
    BACK_OFF_BY_HALVES, /* a step that the device refuses leaves the rest to its other users */
    BACK_OFF_TO_SIZE,
    BACK_OFF_ABOVE_SIZE,
    BACK_OFF_AT_ONCE, /* ask once more, for the size needed */
    BACK_OFF_NONE,
};

/*
 * Does the pool grow rather than cut a block of `size` from a wholly free region of `region` bytes?
 * Cutting would keep the whole region from the device's other users. The pool grows if the region
 * is several times as large as the request and the next step, and if growing costs little or others
 * have asked for memory.
 */
bool growth_keeps(struct bfc_pool *pool, uint64_t size, uint64_t region);

/* growth_next returns the size of the next region for a request of `size`, before the limit and the
 * device are considered; it raises the step if the policy does so before it asks. growth_back_off
 * says what to do when the device refuses that size. `keeping`: the region is taken so that another
 * one stays whole. */
uint64_t growth_next(struct bfc_pool *pool, uint64_t size, bool keeping);
enum back_off growth_back_off(const struct bfc_pool *pool, uint64_t size, bool keeping);

/* Notes that a region was reserved for a request of `size`. `to_keep`: the bytes of that region if
 * it was taken so that another one stays whole, otherwise 0. */
void growth_reserved(struct bfc_pool *pool, uint64_t size, uint64_t to_keep);

#endif
