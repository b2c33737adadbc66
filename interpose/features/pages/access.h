/*
 * Which devices may use a pool's pages: its own, and those of the contexts that have peer access to
 * its context. cuCtxEnablePeerAccess itself means nothing to pages.
 */
#ifndef BFC_INTERPOSE_ACCESS_H
#define BFC_INTERPOSE_ACCESS_H

#include "interpose/arena/arena.h"

/* For addresses behind which pages were just mapped; by whoever has the pages' turn. */
CUresult bfc_access_allow(const struct bfc_driver *driver, struct bfc_arena *arena, bfc_addr start,
                          uint64_t bytes);

/*
 * A context of `device` has got access to the arena's context, or lost it
 * (interpose/context/peers.h knows already): brings all pages up to that. On an error, the
 * driver's, some may be as before. Nothing happens for an arena without pages.
 */
CUresult bfc_access_change(const struct bfc_driver *driver, struct bfc_arena *arena,
                           CUdevice device);

#endif
