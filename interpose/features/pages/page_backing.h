/*
 * A pool that is backed by pages: its addresses and its memory are taken from the driver apart
 * (pool/pages.h), by the calls of CUDA's virtual memory management.
 *
 * Pages belong to a device, not to a context, so they must be given back when the context ends.
 */
#ifndef BFC_INTERPOSE_PAGE_BACKING_H
#define BFC_INTERPOSE_PAGE_BACKING_H

#include "base/atomic.h"
#include "interpose/arena/state.h"
#include "interpose/config/options.h"
#include "pool/pages.h"

/* State of an arena whose pool has pages. */
struct bfc_paging {
    uint64_t granule;               /* the bytes of the smallest page */
    CUmemAllocationProp properties; /* the properties that each page is created with */
    struct bfc_page_calls calls;
    bool is_automatic; /* whether BFC_BACKING is auto, so that bfc_pages_unwanted is asked */
    bool left;         /* atomic: whether the pool has ceased to make and move pages */
    /* bytes of created pages that no event has reported yet; only the thread that has the pages'
     * turn uses this */
    uint64_t unreported;
};

extern unsigned bfc_paging_slot;

/* Returns the arena's state; NULL: its pool has regions and no pages. */
static inline struct bfc_paging *bfc_paging_of(const struct bfc_arena *arena) {
    return arena->features[bfc_load_relaxed(&bfc_paging_slot)];
}

/*
 * Decides by BFC_BACKING and what the driver allows whether an arena gets pages, and of what kind.
 * The arena's context is current and its device known; page calls are tried once. Returns all but
 * the calls, to be freed with free(). NULL: the arena gets regions.
 */
struct bfc_paging *bfc_paging_make(const struct bfc_driver *driver,
                                   const struct bfc_options *options,
                                   const struct bfc_arena *arena);

/*
 * Returns what the program has done that makes BFC_BACKING=auto take no more pages; NULL: nothing.
 * Other processes and devices may go on using memory that was exported or registered, and a
 * captured graph may use the addresses of memory that was freed later. So after either, no page
 * moves any more, and the pool grows by regions; but captures change nothing where the settings ask
 * for sleep, since regions cannot sleep.
 */
const char *bfc_pages_unwanted(const struct bfc_arena *arena);

/* Returns the calls for the pool of an arena that has a bfc_paging. After the context's end they
 * refuse everything but giving pages or addresses back. */
struct bfc_page_calls bfc_page_calls(const struct bfc_arena *arena);

/*
 * Unmaps and gives back all pages and addresses of an arena whose context has ended and which
 * nobody enters any more, whatever state its blocks are in. After that the pool may only be
 * destroyed. Does nothing for an arena without pages.
 */
void bfc_pages_end(const struct bfc_driver *driver, struct bfc_arena *arena);

/*
 * Gives access to pages that were just mapped: to the pool's device and to the devices of contexts
 * with peer access to its context, since cuCtxEnablePeerAccess does not apply to pages. The calling
 * thread has the pages' turn.
 */
CUresult bfc_access_allow(const struct bfc_driver *driver, struct bfc_arena *arena, bfc_addr start,
                          uint64_t bytes);

/*
 * Changes the access to all pages after a context of `device` got access to the arena's context, or
 * lost it, as interpose/context/peers.h already knows. After an error, the driver's, some pages may
 * be as before. Does nothing for an arena without pages.
 */
CUresult bfc_access_change(const struct bfc_driver *driver, struct bfc_arena *arena,
                           CUdevice device);

#endif
