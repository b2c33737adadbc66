/*
 * A pool that is backed by pages: the driver reserves its addresses and creates its memory in
 * separate calls, those of CUDA's virtual memory management (pool/pages.h).
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
    uint64_t granule;               /* the size of the smallest page, in bytes */
    CUmemAllocationProp properties; /* the properties that each page is created with */
    struct bfc_page_calls calls;
    bool is_automatic; /* whether BFC_BACKING is auto, so that the pool takes no more pages once
                          bfc_pages_unwanted names a reason */
    bool left;         /* atomic: whether the pool has ceased to make and move pages */
    /* bytes of created pages that no event in the segment has reported yet; only the one thread
     * that is making or giving back the pool's pages uses this */
    uint64_t unreported;
    /* atomic: after the context's end, a list of the reserved addresses that are not given back
     * yet, and how often pages were unmapped (page_calls.c) */
    struct bfc_kept_addresses *kept;
    unsigned unmapped;
};

extern unsigned bfc_paging_slot;

/* Returns the state of the arena's pages; NULL: its pool has regions and no pages. */
static inline struct bfc_paging *bfc_paging_of(const struct bfc_arena *arena) {
    return arena->features[bfc_load_relaxed(&bfc_paging_slot)];
}

/*
 * Decides whether an arena gets pages, and with which properties, by BFC_BACKING and by what the
 * driver allows, which it finds out by trying the calls for pages. The arena's context is current
 * and its device known. Returns the state of the arena's pages with all but `calls` set, to be
 * freed with free(). NULL: the arena gets regions.
 */
struct bfc_paging *bfc_paging_make(const struct bfc_driver *driver,
                                   const struct bfc_options *options,
                                   const struct bfc_arena *arena);

/*
 * Returns what the program has done that makes BFC_BACKING=auto take no more pages; NULL: nothing.
 * Other processes and devices may go on using memory that was exported or registered, and a
 * captured graph may use the addresses of memory that was freed later. So after an export, a
 * registration or a capture no page moves any more, and the pool grows by regions. But if the
 * settings ask for sleep, captures do not count, since only pages can sleep.
 */
const char *bfc_pages_unwanted(const struct bfc_arena *arena);

/* Returns the functions by which the pool makes and gives back pages, for an arena that has a
 * bfc_paging. After the context's end they refuse everything but giving pages or addresses back. */
struct bfc_page_calls bfc_page_calls(const struct bfc_arena *arena);

/* Unmaps and gives back all pages and addresses of an arena whose context has ended and which no
 * thread enters any more, whatever state its blocks are in. After that the pool may only be
 * destroyed. Does nothing for an arena without pages. */
void bfc_pages_end(const struct bfc_driver *driver, struct bfc_arena *arena);

/* Frees the state of the arena's pages, if it has any. */
void bfc_pages_forget(struct bfc_arena *arena);

/* Gives access to pages that were just mapped: to the pool's device and to the devices of contexts
 * with peer access to its context, since cuCtxEnablePeerAccess does not apply to pages. Called by
 * the one thread that is making the pool's pages. */
CUresult bfc_access_allow(const struct bfc_driver *driver, struct bfc_arena *arena, bfc_addr start,
                          uint64_t bytes);

/* Changes the access to all pages of a pool after a context of `device` has got access to the
 * pool's context, or has lost it, and interpose/context/peers.c has recorded that. Returns the
 * driver's result; after an error some pages may be as before. Does nothing for an arena without
 * pages. */
CUresult bfc_access_change(const struct bfc_driver *driver, struct bfc_arena *arena,
                           CUdevice device);

#endif
