/* Whether a pool is backed by pages, and of what kind these are. */
#ifndef BFC_INTERPOSE_SUPPORT_H
#define BFC_INTERPOSE_SUPPORT_H

#include "interpose/arena/state.h"
#include "interpose/config/options.h"

/*
 * Fills in the paging of an arena whose context is current and whose device is known, as
 * BFC_BACKING says and the driver allows: the granule stays 0 where it is to have regions. What the
 * device says of itself is tried once.
 */
void bfc_backing_choose(const struct bfc_driver *driver, const struct bfc_options *options,
                        struct bfc_arena *arena);

#endif
