/*
 * Pages: a pool that takes addresses and memory from the device separately.
 *
 * With `pages` in struct bfc_upstream the pool reserves addresses, many at once, and maps pages
 * behind the parts of them that it uses. A page is what the device makes in one call, a whole
 * number of page granules; it is mapped, moved and given back as a whole. Pages of several sizes
 * exist side by side. Addresses without a page are bare: they are in no live block and in no free
 * one. So
 * - the pool grows in place: new pages go behind the bare addresses after a free block;
 * - where memory is short, pages that lie wholly in ready blocks move behind other addresses. An
 *   allocation of n bytes fails only if n, rounded up to whole granules, the pages with a byte that
 *   is not ready, and the pinned pages together exceed what the limit and the device allow;
 * - trimming gives back single pages.
 *
 * Only a ready page is ever unmapped: not a byte of it is live, pending, deferred or awaited, and
 * it is not pinned. Work on the device might still use any other page, and no driver documents that
 * unmapping waits for that work. A page is at one address at a time.
 *
 * While less than (1 + page_slack) times the most that was ever requested is reserved, the pool
 * makes new pages. Above that it moves free pages first; where the limit or the device allows no
 * new ones, it moves all free pages that it can.
 *
 * A page that was made for a large block is remade before a much smaller block is handed out in it:
 * the page goes back, and small pages are made in its place.
 *
 * One thread at a time owns the pages, from the decision what to move or make until the calls for
 * that are done; frees, and allocations that find a free block, go on meanwhile. If a call fails,
 * the pages that were just made go back. A page that could not be unmapped from its old address
 * stays in use there; one that could not be unmapped from its new address is lost, and unmapping it
 * is tried again when the pool next grows or trims. The allocation then tries once more with as few
 * new pages as possible. If that fails too, and not for lack of memory, the upstream's `reserve`
 * provides a region, for which ready pages go back if necessary.
 *
 * Sizes in bytes. Thread-safety as in pool.h.
 */
#ifndef BFC_POOL_PAGES_H
#define BFC_POOL_PAGES_H

#include "pool/pool.h"

/* The upstream's name for a page, such as a handle of the driver. The pool only stores it. */
typedef uint64_t bfc_page;

/*
 * The calls by which the pool asks the device for pages. Every function gets the upstream's
 * `context` first. All but `may_remake` and `left` may block, and are called without the pool's
 * lock by the one thread that owns the pages; so none of them may call bfc_pool_trim or a function
 * of this header for the same pool. `bytes` and addresses are multiples of `granule`.
 */
struct bfc_page_calls {
    uint64_t granule; /* the size of the smallest page: a power of two, at least 64 KiB */
    /* bytes of addresses to reserve at once; the pool takes fewer if the device refuses */
    uint64_t addresses;
    /* `reserve` reserves addresses, which start at a multiple of `granule`. `unreserve` gives back
     * all addresses of one `reserve`. */
    enum bfc_reserve_result (*reserve)(void *context, uint64_t bytes, bfc_addr *start);
    void (*unreserve)(void *context, bfc_addr start, uint64_t bytes);
    /* `create` makes a page, which is mapped nowhere yet; `release` gives back a page that is
     * mapped nowhere. */
    enum bfc_reserve_result (*create)(void *context, uint64_t bytes, bfc_page *page,
                                      struct bfc_ask *ask);
    void (*release)(void *context, bfc_page page, uint64_t bytes);
    /* Called once after a series of calls of `release`, with the sum of the bytes that they gave
     * back. May be NULL. */
    void (*released)(void *context, uint64_t bytes);
    /* Maps a page at addresses without a page. False: nothing has changed. */
    bool (*map)(void *context, bfc_addr start, uint64_t bytes, bfc_page page);
    /* Unmaps a range that consists of one or several whole pages next to each other. False: all of
     * these pages are still mapped. */
    bool (*unmap)(void *context, bfc_addr start, uint64_t bytes);
    /* Lets the device and its peers use a range in which pages were just mapped. False: the pool
     * unmaps these pages and gives them back. */
    bool (*allow)(void *context, bfc_addr start, uint64_t bytes);
    /* Tells whether pages may be remade now, that is, given back and replaced by smaller ones.
     * Called under the pool's lock, so it must not block. NULL: they always may. */
    bool (*may_remake)(void *context);
    /* Tells whether the pool may make and move pages now; if not, it grows by regions that the
     * upstream's `reserve` provides. NULL: it always may. */
    bool (*may_grow)(void *context);
    /* Returns about how many bytes the device has left for new pages, as was last known. Called
     * under the pool's lock, so it must not block. NULL: that is not known. */
    uint64_t (*left)(void *context);
    /* Called without any lock when an allocation needs to make, move or remake pages while the
     * pages are frozen (bfc_pool_freeze_pages). Thaws the pages and returns 0, or returns the error
     * code with which the allocation fails; the pool does not call again for that allocation. NULL:
     * the pages are never frozen. */
    int (*wake)(void *context);
};

struct bfc_page_info {
    bfc_page page;
    bfc_addr start;
    uint64_t bytes;
    uint32_t pins; /* how many calls of bfc_pool_pin keep the page where it is */
    /* whether the page is mapped but belongs to no block, because unmapping it has failed; the pool
     * will try again */
    bool lost;
    /* whether the page's memory is gone and only its addresses are kept, as bfc_pool_set_page said
     * last; false at first */
    bool asleep;
};

/* Amounts of pages and addresses. `pages` and `calls` are counts, the other fields are bytes. The
 * first six fields are values as of now, the others sums since the pool began. */
struct bfc_page_stats {
    /* bytes of reserved addresses, with pages or without */
    uint64_t addresses;
    /* bytes of reserved addresses without a page */
    uint64_t bare;
    uint64_t pages; /* how many pages there are */
    /* bytes of ready pages, which bfc_pool_trim would give back */
    uint64_t ready;
    /* bytes of pages that are pinned */
    uint64_t pinned;
    /* bytes of pages that can neither be used nor be unmapped */
    uint64_t lost;
    /* bytes of pages that were made since the pool began */
    uint64_t created;
    /* bytes of pages that were moved since the pool began */
    uint64_t moved;
    /* bytes of pages that went back to the device since the pool began */
    uint64_t released;
    /* how many calls of the functions in struct bfc_page_calls were made */
    uint64_t calls;
};

/* Copies the amounts to *stats, all as of one moment. O(pages). False: the pool has no pages, and
 * *stats does not change. */
bool bfc_pool_page_stats(struct bfc_pool *pool, struct bfc_page_stats *stats);

/*
 * Pins the pages behind a live block, or behind a part of it: until bfc_pool_unpin was called as
 * often, the pages neither move nor go back to the device, even after the block is freed. Call it
 * before the memory is exported (IPC, dma-buf). False: not all of the range has pages, and nothing
 * is pinned.
 */
bool bfc_pool_pin(struct bfc_pool *pool, bfc_addr start, uint64_t bytes);

/* Takes back one earlier bfc_pool_pin of the range: each of its pages is pinned once less. */
void bfc_pool_unpin(struct bfc_pool *pool, bfc_addr start, uint64_t bytes);

/*
 * Calls `visit` for each page that has a byte in the range, in address order, until `visit` returns
 * false; under the lock, so `visit` must not call the pool. `bytes` of UINT64_MAX: all pages from
 * `start` on. Returns the number of calls.
 */
uint64_t bfc_pool_visit_pages(struct bfc_pool *pool, bfc_addr start, uint64_t bytes,
                              bool (*visit)(void *context, const struct bfc_page_info *page),
                              void *context);

/*
 * Between bfc_pool_hold_pages and bfc_pool_let_pages no page is made, moved or given back, so that
 * the caller can call the driver for every page that bfc_pool_visit_pages shows (to let a new peer
 * use them, for instance). Allocations that have to make, move or remake pages wait meanwhile; the
 * caller must neither allocate nor trim.
 */
void bfc_pool_hold_pages(struct bfc_pool *pool);
void bfc_pool_let_pages(struct bfc_pool *pool);

/*
 * Between bfc_pool_freeze_pages and bfc_pool_thaw_pages, which different threads may call, no page
 * is made, moved or given back, but no thread waits: trimming finds no pages, and allocations that
 * have to change pages call `wake` first. By bfc_pool_set_page the caller says, with `asleep`, that
 * a page's memory is gone and only its addresses are kept, and without `asleep`, that the memory
 * has come back as the page `page`. The pool goes on counting a page that is asleep as reserved,
 * and hands out blocks in it.
 */
void bfc_pool_freeze_pages(struct bfc_pool *pool);
void bfc_pool_set_page(struct bfc_pool *pool, bfc_addr start, bfc_page page, bool asleep);
void bfc_pool_thaw_pages(struct bfc_pool *pool);

#endif
