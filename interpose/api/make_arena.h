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

/*
 * The two halves of that, for an arena of other memory: an arena with one reference, of which the
 * caller sets what it is for (device, home, limits); and what all have: section, fences, pool.
 * NULL: the host has no memory, and the arena is gone.
 */
struct bfc_arena *bfc_arena_begin(const struct bfc_memory_source *source, CUcontext context,
                                  unsigned long long id);
struct bfc_arena *bfc_arena_complete(struct bfc_arena *arena, const struct bfc_driver *driver,
                                     int free_mode, struct bfc_pool_config *config);

#endif
