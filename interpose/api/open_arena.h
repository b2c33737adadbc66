/*
 * Finds the arena that a call is for, or makes it with all that belongs to it.
 *
 * Thread-safe.
 */
#ifndef BFC_INTERPOSE_OPEN_H
#define BFC_INTERPOSE_OPEN_H

#include "base/compiler.h"
#include "interpose/arena/arena.h"
#include "interpose/config/process.h"
#include "layout/segment.h"

struct bfc_arena *bfc_open_arena(const struct bfc_driver *driver, CUcontext context,
                                 unsigned long long id, enum bfc_forward_reason *reason);

/*
 * The arena of the calling thread's current context, made now if it is new. NULL if there is no
 * current context, or no pool can be made for it; `reason` says why. Valid until the thread's
 * next call here or of bfc_arena_of.
 */
static inline struct bfc_arena *bfc_current_arena(const struct bfc_driver *driver,
                                                  enum bfc_forward_reason *reason) {
    CUcontext context = NULL;
    unsigned long long id = 0;
    *reason = BFC_FORWARD_NO_CONTEXT;
    if (driver->cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context ||
        (driver->cuCtxGetId && driver->cuCtxGetId(context, &id) != CUDA_SUCCESS))
        return NULL;
    struct bfc_arena *arena = bfc_thread_arena.arena;
    if (LIKELY(bfc_arena_is_of(arena, context, id)))
        return arena;
    return bfc_open_arena(driver, context, id, reason);
}

#endif
