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

/* The driver takes memory from the device in pages of this size. The size of a region above half a
 * page is rounded up to whole pages, because nobody else could use the rest of its last page. */
#define POLICY_PAGE (2 * MIB)

/* Returns how many bytes the device has to provide for a region of `bytes` bytes: a region of at
 * most half a page shares a page with others, a larger one takes whole pages. */
static inline uint64_t growth_on_device(uint64_t bytes) {
    return bytes <= POLICY_PAGE / 2 ? bytes : bfc_round_up(bytes, POLICY_PAGE);
}

enum back_off {
    /* after each refusal by the device, ask for half as much, to leave the rest of the device to
     * its other users */
    BACK_OFF_BY_HALVES,
    BACK_OFF_TO_SIZE,
    BACK_OFF_ABOVE_SIZE,
    BACK_OFF_AT_ONCE, /* after the first refusal ask for no more than the request needs */
    BACK_OFF_NONE,
};

/*
 * Whether the pool grows rather than cut a block of `size` from a wholly free region of `region`
 * bytes, because cutting would keep the whole region from the device's other users. The pool grows
 * if the region is several times as large as both the request and the region that would be taken
 * instead, and if growing costs little or other jobs have asked for memory.
 */
bool growth_keeps(struct bfc_pool *pool, uint64_t size, uint64_t region);

/* growth_next returns the size of the next region for a request of `size` bytes, without regard to
 * the limit and the device's free memory. With policy tf it may also raise `step`, the least size
 * of later regions. growth_back_off says what to ask for after the device has refused that size.
 * `keeping`: the region is taken so that a wholly free one need not be split. */
uint64_t growth_next(struct bfc_pool *pool, uint64_t size, bool keeping);
enum back_off growth_back_off(const struct bfc_pool *pool, uint64_t size, bool keeping);

/* Returns the initial value of `step`, the number of bytes from which the size of the next region
 * is computed. */
uint64_t growth_first_step(const struct bfc_pool *pool);

/* To be called after a region was reserved for a request of `size` bytes: raises `step`, from which
 * the size of the next region is computed. `to_keep`: the bytes of the region if it was taken so
 * that a wholly free one need not be split, otherwise 0. */
void growth_reserved(struct bfc_pool *pool, uint64_t size, uint64_t to_keep);

/* To be called after regions went back for others' use. With policy tf lowers `step`, the size of
 * the next region, to what fits the bytes that remain reserved. Otherwise `step` would double each
 * time a region is taken and given back, until the pool reserves the whole device for one small
 * block. */
void growth_trimmed(struct bfc_pool *pool);

/* ---- growth of a pool with pages (page_growth.c): when to make new pages rather than move free
 * ones, how many and how large, and when small blocks get pages of their own ---- */

/* Returns how many bytes the pool may add to `reserved` for a request of `bytes` (before rounding),
 * without regard to the limit. If the request needs more, the pool moves free pages to it instead
 * of making new ones. The result is a multiple of the smallest page. */
uint64_t page_growth_room(const struct bfc_pool *pool, uint64_t bytes);

/* Returns how many bytes of pages the pool makes beyond what a request needs, so that later
 * requests find free memory. The caller makes fewer if the limit or the slack has no room for so
 * many. */
uint64_t page_growth_step(const struct bfc_pool *pool);

/* Sets the bound on the size of new pages; once free blocks have cost much memory
 * (page_growth_judge), by those that there are now: the more scattered they are, the smaller the
 * pages. To be called before the pool grows. O(free blocks of a page or more). */
void page_growth_look(struct bfc_pool *pool);

/* To be called with a plan that serves a request of `bytes` and makes `making` bytes of pages for
 * it, because no more ready pages can move there. If so much more would then be reserved than was
 * ever requested that free blocks must be scattered, bounds the size of pages from now on. */
void page_growth_judge(struct bfc_pool *pool, uint64_t bytes, uint64_t making);

/* Returns the size in bytes of each new page for a planned region that lacks `bytes` bytes of
 * pages. */
uint64_t page_growth_fit(const struct bfc_pool *pool, uint64_t bytes);

/* Returns the size in bytes of each new page for a block of `block` bytes. The last page of a block
 * may be smaller. */
uint64_t page_growth_size(const struct bfc_pool *pool, uint64_t block);

/* To be called once for each plan that makes pages, because it counts them. Returns how many of the
 * `lacking` bytes of a block get pages that hold nothing but this block: all of them if they are at
 * least OWN_PAGE, the page rule is auto and the bound on calls allows another page; otherwise 0. */
uint64_t page_growth_own(struct bfc_pool *pool, uint64_t lacking);

/* Returns the size of each new page of a step that makes `making` bytes: `page`, or with page rule
 * auto less, as far as the bound on calls allows more pages. */
uint64_t page_growth_piece(const struct bfc_pool *pool, uint64_t making, uint64_t page);

/* Returns the size of the largest page in which a block of `block` bytes should be handed out; a
 * larger page is first replaced by smaller ones. */
uint64_t page_growth_most(const struct bfc_pool *pool, uint64_t block);

/* To be called after the device refused `bytes` bytes of new pages, of which `made` had been made
 * and went back unused. From now on the pool makes at most half of `made`, or half of `bytes` if
 * `made` is 0, beyond what a request needs; each success raises this bound again. */
void page_growth_refused(struct bfc_pool *pool, uint64_t bytes, uint64_t made);

/* To be called after `bytes` bytes of new pages were made: `count` pages, most of them of `page`
 * bytes. Raises the bound on how much is made beyond what a request needs. While the pool has large
 * pages, makes further allocations look for pages that are too large for them. */
void page_growth_made(struct bfc_pool *pool, uint64_t bytes, uint64_t page, uint64_t count);

/* To be called after `bytes` bytes of pages have moved to where a request needed them. Once more
 * bytes have moved in all than was ever requested at one time, small blocks get pages that they do
 * not share with large ones. */
void page_growth_moved(struct bfc_pool *pool, uint64_t bytes);

#endif
