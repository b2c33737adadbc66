/*
 * What a pool asks of the driver when its addresses and its memory are taken apart (pool/pages.h):
 * the calls of CUDA's virtual memory management, "Virtual Memory Management" in the driver API's
 * documentation.
 *
 * Pages are the device's, not a context's: whoever made them gives them back when the context ends
 * (bfc_pages_end). After that all calls here are refused, except those that give something back.
 */
#ifndef BFC_INTERPOSE_PAGE_CALLS_H
#define BFC_INTERPOSE_PAGE_CALLS_H

#include "interpose/arena/state.h"
#include "pool/pages.h"

/* For the pool of this arena, whose paging is there. */
struct bfc_page_calls bfc_page_calls(const struct bfc_arena *arena);

/*
 * The arena's context has ended, and nobody enters it any more: unmaps and gives back all of its
 * pages and addresses, whatever state their blocks are in. The pool is not used any more but to be
 * destroyed. Nothing happens for an arena without pages.
 */
void bfc_pages_end(const struct bfc_driver *driver, struct bfc_arena *arena);

#endif
