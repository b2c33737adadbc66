/* Makes an arena with its pool, the source of the pool's memory, its fences and its counters. */
#ifndef BFC_INTERPOSE_MAKE_ARENA_H
#define BFC_INTERPOSE_MAKE_ARENA_H

#include "interpose/arena/state.h"

/*
 * Makes an arena of the current context, with one reference, that no other thread knows yet. `id`
 * is 0 if the driver has no ids of contexts. NULL: the host has no memory, or the driver has
 * returned an error. If there is to be a segment, it must be made before the first arena.
 */
struct bfc_arena *bfc_arena_make(const struct bfc_driver *driver, CUcontext context,
                                 unsigned long long id);

/*
 * The two halves of bfc_arena_make, for callers that make an arena of host memory. bfc_arena_begin
 * returns an arena with one reference; NULL: the host has no memory. Then the caller sets `home`,
 * `on`, `device` and the limits. bfc_arena_complete adds the arena's section of the segment, its
 * fences and its pool; NULL: the host has no memory, and the arena was dropped.
 */
struct bfc_arena *bfc_arena_begin(const struct bfc_memory_source *source, CUcontext context,
                                  unsigned long long id);
struct bfc_arena *bfc_arena_complete(struct bfc_arena *arena, const struct bfc_driver *driver,
                                     int free_mode, struct bfc_pool_config *config);

#endif
