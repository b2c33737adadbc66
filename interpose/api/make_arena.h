/* Making an arena: its pool, what that takes its memory from, its fences, where it counts. */
#ifndef BFC_INTERPOSE_MAKE_ARENA_H
#define BFC_INTERPOSE_MAKE_ARENA_H

#include "interpose/arena/state.h"

/*
 * A new arena that nobody else knows yet, with one reference, of the current context; an id of 0:
 * the driver has none. NULL: the host has no memory, or the driver does not answer. The segment is
 * there before the first arena, if it is to be.
 */
struct bfc_arena *bfc_arena_make(const struct bfc_driver *driver, CUcontext context,
                                 unsigned long long id);

#endif
