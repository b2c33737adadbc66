/*
 * Finds the arena that a call is for, or makes it with all that belongs to it. Thread-safe.
 */
#ifndef BFC_INTERPOSE_OPEN_H
#define BFC_INTERPOSE_OPEN_H

#include "base/compiler.h"
#include "interpose/arena/arena.h"
#include "interpose/config/process.h"
#include "interpose/driver/current.h"
#include "layout/segment.h"

struct bfc_arena *bfc_open_arena(const struct bfc_driver *driver, enum bfc_forward_reason *reason);

/*
 * The arena of the calling thread's current context, made now if it is new. NULL if there is no
 * current context, or no pool can be made for it; `reason` says why. Valid until the thread next
 * calls this function or bfc_arena_of. The driver is asked each time, since a thread's context may
 * change, and end, by calls that no hook sees.
 */
static inline struct bfc_arena *bfc_current_arena(const struct bfc_driver *driver,
                                                  enum bfc_forward_reason *reason) {
    *reason = BFC_FORWARD_NO_CONTEXT;
    struct bfc_arena *last = bfc_arena_last_of(bfc_context_id(driver, NULL));
    return LIKELY(last) ? last : bfc_open_arena(driver, reason);
}

#endif
