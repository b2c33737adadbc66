/* Finds the arena of a context, or makes it and tells the library's features that it is there. */
#include "interpose/api/open_arena.h"

#include "interpose/api/context_end.h"
#include "interpose/api/make_arena.h"
#include "interpose/context/green.h"
#include "interpose/reuse/allocate.h"
#include "interpose/stats/published_segment.h"
#include "interpose/table/feature.h"

/* Makes the context's arena and publishes it, or returns the one that another thread has published
 * first. NULL: the host has no memory. */
static struct bfc_arena *make_and_publish(const struct bfc_driver *driver, CUcontext context,
                                          unsigned long long id) {
    struct bfc_arena *made = bfc_arena_make(driver, context, id);
    if (!made)
        return NULL;
    BFC_TELL_FEATURES(arena_publishing, made);
    struct bfc_arena *published = bfc_arena_publish(made, id);
    BFC_TELL_FEATURES(arena_published, published, published == made);
    return published;
}

/* Returns the living arena of the context, or a new one, as the arena that the thread used last. */
static struct bfc_arena *find_or_make(const struct bfc_driver *driver, CUcontext context,
                                      unsigned long long id) {
    struct bfc_arena *arena = bfc_arena_of_context(context, id);
    if (!arena) {
        bfc_context_serve_ends();
        bfc_segment_open(bfc_process());
        arena = make_and_publish(driver, context, id);
    }
    return arena ? bfc_arena_set_last(arena) : NULL;
}

/* Returns the arena of the current context or, if that was made from a green context, of the
 * primary one. Without ids of contexts, an arena is found by its context's handle alone. */
struct bfc_arena *bfc_open_arena(const struct bfc_driver *driver, enum bfc_forward_reason *reason) {
    CUcontext context = NULL;
    unsigned long long id = 0;
    if (driver->cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context ||
        (driver->cuCtxGetId && driver->cuCtxGetId(context, &id) != CUDA_SUCCESS))
        return NULL;
    if (bfc_arena_is_of(bfc_thread_arena.arena, context, id))
        return bfc_thread_arena.arena;
    CUcontext owner = bfc_green_owner(driver, context);
    if (owner != context) {
        if (driver->cuCtxGetId(owner, &id) != CUDA_SUCCESS)
            return NULL;
        if (bfc_arena_is_of(bfc_thread_arena.arena, owner, id))
            return bfc_thread_arena.arena;
    }
    *reason = BFC_FORWARD_NO_HOST_MEMORY;
    bfc_reuse_context_made(driver, owner);
    return find_or_make(driver, owner, id);
}
