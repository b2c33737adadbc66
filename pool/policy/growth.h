/*
 * Growth: computes how large the next region is, from the policy and BFC_GROWTH. A new rule of
 * growth goes here.
 *
 * Everything here is called under the pool's lock. Sizes are in bytes.
 */
#ifndef BFC_POOL_GROWTH_H
#define BFC_POOL_GROWTH_H

#include "base/numbers.h"
#include "pool/policy/policy.h"

/* The driver takes memory from the device in pages of this size. A region above half a page ends at
 * a page's end, because nobody could use the rest of its last page. */
#define POLICY_PAGE (2 * MIB)

/* Returns what a region of `bytes` bytes takes from the device: whole pages, unless it may share
 * one. */
static inline uint64_t growth_on_device(uint64_t bytes) {
    return bytes <= POLICY_PAGE / 2 ? bytes : bfc_round_up(bytes, POLICY_PAGE);
}

enum back_off {
    /* asks for half as much, since what the device still has should be left to its other users */
    BACK_OFF_BY_HALVES,
    BACK_OFF_TO_SIZE,
    BACK_OFF_ABOVE_SIZE,
    BACK_OFF_AT_ONCE, /* asks once more, for the size that is needed */
    BACK_OFF_NONE,
};

/*
 * Whether the pool grows rather than cut a block of `size` from a wholly free region of `region`
 * bytes, because cutting would keep the whole region from the device's other users. The pool grows
 * if the region is several times as large as the request and the next step, and if growing costs
 * little or others have asked for memory.
 */
bool growth_keeps(struct bfc_pool *pool, uint64_t size, uint64_t region);

/* growth_next returns the size of the next region for a request of `size`, before the limit and the
 * device are considered; it raises the step if the policy does so before it asks. growth_back_off
 * says what to do when the device refuses that size. `keeping`: the region is taken so that another
 * one stays whole. */
uint64_t growth_next(struct bfc_pool *pool, uint64_t size, bool keeping);
enum back_off growth_back_off(const struct bfc_pool *pool, uint64_t size, bool keeping);

/* Returns the step with which a pool begins. */
uint64_t growth_first_step(const struct bfc_pool *pool);

/* Notes that a region was reserved for a request of `size`. `to_keep`: the bytes of that region if
 * it was taken so that another one stays whole, otherwise 0. */
void growth_reserved(struct bfc_pool *pool, uint64_t size, uint64_t to_keep);

/* Notes that regions went back because others may want their memory: the step of policy tf is
 * lowered to what fits the rest. Otherwise it would double with each region that a pool takes and
 * gives back in turn, until one small block keeps the whole device from other contexts. */
void growth_trimmed(struct bfc_pool *pool);

/* ---- growth with pages (page_growth.c): when the pool makes new pages rather than moves free
 * ones, how many and how large they are, and when small blocks get pages of their own ---- */

/* Returns how much a request of `bytes`, before rounding, may add to `reserved` before the pool
 * moves free pages instead; in whole granules of pages. Does not consider the limit. */
uint64_t page_growth_room(const struct bfc_pool *pool, uint64_t bytes);

/* Returns how much the pool makes beyond what a request lacks, if there is room for it, so that the
 * next requests find free memory. */
uint64_t page_growth_step(const struct bfc_pool *pool);

/* Notes how large new pages may be, by the free blocks that there are now. To be called before the
 * pool grows. O(free blocks of a page or more). */
void page_growth_look(struct bfc_pool *pool);

/* Returns the size of each new page for a plan's memory of `bytes` bytes. */
uint64_t page_growth_fit(const struct bfc_pool *pool, uint64_t bytes);

/* Returns the size of each new page for a block of `block` bytes; the last page may be smaller. */
uint64_t page_growth_size(const struct bfc_pool *pool, uint64_t block);

/* Returns how many bytes get pages apart from the rest of the step: all that a block lacks, if that
 * is much; otherwise 0. */
uint64_t page_growth_own(const struct bfc_pool *pool, uint64_t lacking);

/* Returns the size of the largest page that should hold a block of `block` bytes. */
uint64_t page_growth_most(const struct bfc_pool *pool, uint64_t block);

/* Notes that the device refused a step of `bytes` after `made` bytes of it, which went back unused.
 * The next steps are at most half of `made`, or half of `bytes` if nothing was made; pages that are
 * made raise that bound again. */
void page_growth_refused(struct bfc_pool *pool, uint64_t bytes, uint64_t made);

/* Notes that `bytes` bytes of new pages were made: `count` pages, most of them of `page` bytes. */
void page_growth_made(struct bfc_pool *pool, uint64_t bytes, uint64_t page, uint64_t count);

/* Notes that `bytes` bytes of pages have moved to where a request needed them. */
void page_growth_moved(struct bfc_pool *pool, uint64_t bytes);

#endif
