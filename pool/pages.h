/*
 * Pages behind the pool: its addresses and its memory are taken from the device apart.
 *
 * With `pages` in struct bfc_upstream the pool reserves addresses, many at once, and maps pages
 * behind the parts of them that it uses. A page is what the device makes in one call, a whole
 * number of page granules, and is mapped, moved and given back as a whole; pages of several sizes
 * live side by side. Addresses without a page are bare: they are in no live block and in no free
 * one. So
 * - the pool grows in place: new pages go behind the bare addresses after a free block;
 * - where memory is short, pages that lie wholly in ready blocks move behind other addresses, and
 *   an allocation of n bytes fails only if the pages with a byte that is not ready, those that are
 *   pinned, and n, rounded up to whole granules, exceed what the limit and the device allow;
 * - trimming gives back single pages.
 *
 * Only a ready page is ever unmapped: not a byte of it is live, pending, deferred or awaited, and
 * it is not pinned. (What no driver documents is not relied upon: whether unmapping waits for the
 * device.) A page is at one address at a time.
 *
 * While less than (1 + slack) times the most that was ever requested is reserved, the pool makes
 * new pages; from there on it moves free ones first; where the limit or the device allows no more
 * it moves all that it can.
 *
 * A page that was made for a large block is remade before a much smaller one lies in it: it goes
 * back, and small ones are made in its place.
 *
 * Everything is decided under the pool's lock and done without it. One thread at a time has the
 * pages' turn, from the decision until the calls are done; allocations that hit and frees go on
 * meanwhile. A call that fails leaves nothing behind: pages that were made go back, a page that
 * could not be unmapped stays what it was, or goes when the pool next grows or trims. What failed
 * is tried once more with as few new pages as possible; then, unless memory alone was lacking, a
 * region serves (bfc_upstream.reserve, if there is one), for which ready pages go back if they have
 * to.
 *
 * Sizes in bytes. Thread-safety as in pool.h.
 */
#ifndef BFC_POOL_PAGES_H
#define BFC_POOL_PAGES_H

#include "pool/pool.h"

/* What the upstream calls a page, a handle of the driver's say. The pool only keeps it. */
typedef uint64_t bfc_page;

/*
 * What the pool asks of the device. Every function but the last gets the upstream's `context`
 * first, may block, and is called without the pool's lock, by the one thread that has the pages'
 * turn: none may call bfc_pool_trim or any function of this header for the same pool. `bytes` and
 * addresses are multiples of `granule`.
 */
struct bfc_page_calls {
    uint64_t granule;   /* a power of two from 64 KiB on: the least that the device makes */
    uint64_t addresses; /* how many to reserve at once; fewer if the device refuses */
    /* Reserves addresses, at a multiple of the granule, and gives a whole reservation back. */
    enum bfc_reserve_result (*reserve)(void *context, uint64_t bytes, bfc_addr *start);
    void (*unreserve)(void *context, bfc_addr start, uint64_t bytes);
    /* Makes a page, which is mapped nowhere; and gives one back that is mapped nowhere. */
    enum bfc_reserve_result (*create)(void *context, uint64_t bytes, bfc_page *page,
                                      struct bfc_ask *ask);
    void (*release)(void *context, bfc_page page, uint64_t bytes);
    /* So many bytes of pages were just released, all for one reason. NULL: need not be told. */
    void (*released)(void *context, uint64_t bytes);
    /* Puts a page behind addresses that are bare. False: nothing has changed. */
    bool (*map)(void *context, bfc_addr start, uint64_t bytes, bfc_page page);
    /* Takes all pages from behind these addresses: one or several, next to each other and each of
     * them whole. False: they are all mapped as before. */
    bool (*unmap)(void *context, bfc_addr start, uint64_t bytes);
    /* Lets the device, and its peers, use these addresses, behind which pages were just mapped.
     * False: the pool unmaps and gives back what it mapped. */
    bool (*allow)(void *context, bfc_addr start, uint64_t bytes);
    /* Whether pages may be remade now, which can always be left out. Called under the pool's lock,
     * alone of all, so it must not block. NULL: they may. */
    bool (*may_remake)(void *context);
};

/* One page and where it is. */
struct bfc_page_info {
    bfc_page page;
    bfc_addr start;
    uint64_t bytes;
    uint32_t pins; /* a count */
    bool lost;     /* mapped, but in no block: it could not be unmapped, and will be */
};

/* What the pages come to. All since the pool began, or now. */
struct bfc_page_stats {
    uint64_t addresses; /* reserved now: bytes of pages + bare */
    uint64_t bare;      /* of them without a page */
    uint64_t pages;     /* a count, now */
    uint64_t ready;     /* bytes of pages that a trim would give back now */
    uint64_t pinned;    /* bytes of pages that are pinned now */
    uint64_t lost;      /* bytes of pages that can neither be used nor unmapped */
    uint64_t created;   /* bytes that new pages ever had */
    uint64_t moved;     /* bytes of pages that ever moved */
    uint64_t released;  /* bytes of pages that were ever given back */
    uint64_t calls;     /* a count: of all functions of struct bfc_page_calls */
};

/* Returns a consistent copy. O(pages). False: the pool has no pages; *stats is untouched. */
bool bfc_pool_page_stats(struct bfc_pool *pool, struct bfc_page_stats *stats);

/*
 * Pins the pages behind a live block, or a part of it: until each pin was taken back they neither
 * move nor go back to the device, live or not. Say so before others are told of them (IPC,
 * dma-buf). False, and nothing is pinned: not all of the range has pages.
 */
bool bfc_pool_pin(struct bfc_pool *pool, bfc_addr start, uint64_t bytes);

/* Takes one pin back from each page of the range. */
void bfc_pool_unpin(struct bfc_pool *pool, bfc_addr start, uint64_t bytes);

/*
 * Calls `visit` for each page that has a byte in the range, in address order, under the lock, until
 * it says false: it must not call the pool. UINT64_MAX bytes: all from `start` on. Returns how many
 * it was called for.
 */
uint64_t bfc_pool_visit_pages(struct bfc_pool *pool, bfc_addr start, uint64_t bytes,
                              bool (*visit)(void *context, const struct bfc_page_info *page),
                              void *context);

/*
 * Takes the pages' turn and gives it back: between the two no page is made, moved or given back, so
 * that the caller may call the driver on what bfc_pool_visit_pages shows (access for a new peer,
 * say) and no page is left out. Allocations that would need pages or remake some wait meanwhile;
 * the caller must neither allocate nor trim.
 */
void bfc_pool_hold_pages(struct bfc_pool *pool);
void bfc_pool_let_pages(struct bfc_pool *pool);

#endif
