/* Whether a pool is backed by pages, and of what kind these are. */
#ifndef BFC_INTERPOSE_SUPPORT_H
#define BFC_INTERPOSE_SUPPORT_H

#include "interpose/arena/state.h"
#include "interpose/config/options.h"
#include "interpose/features/pages/paging.h"

/*
 * For an arena whose context is current and whose device is known: what its pages are to be, as
 * BFC_BACKING says and the driver allows, without the calls; to be freed. NULL: it is to have
 * regions. What the device says of itself is tried once.
 */
struct bfc_paging *bfc_paging_make(const struct bfc_driver *driver,
                                   const struct bfc_options *options,
                                   const struct bfc_arena *arena);

#endif
