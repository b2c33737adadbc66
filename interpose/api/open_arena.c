/* Finding and making arenas: the one place that knows all that an arena is wired to. */
#include "interpose/api/open_arena.h"

#include "interpose/api/context_end.h"
#include "interpose/api/make_arena.h"
#include "interpose/context/green.h"
#include "interpose/features/plan/followed_plan.h"
#include "interpose/features/plan/learn/learn.h"
#include "interpose/features/pressure/announce.h"
#include "interpose/features/watch/helper.h"
#include "interpose/reuse/allocate.h"
#include "interpose/stats/published_segment.h"

void bfc_open_segment(const struct bfc_process *process) {
    bfc_segment_open(process, bfc_helper_start);
}

/* Not the thread's last: another one that lives, or a new one. */
static struct bfc_arena *find_or_make(const struct bfc_driver *driver, CUcontext context,
                                      unsigned long long id) {
    struct bfc_arena *arena = bfc_arena_of_context(context, id);
    if (!arena) {
        bfc_context_serve_ends();
        bfc_open_segment(bfc_process());
        struct bfc_arena *made = bfc_arena_make(driver, context, id);
        arena = made ? bfc_plan_publish(made, id) : NULL;
        if (arena)
            bfc_announce_to_new(arena);
        if (arena && arena == made) /* not another thread's, which was first */
            bfc_learn_begin(arena);
    }
    return arena ? bfc_arena_set_last(arena) : NULL;
}

/* The thread's last arena was another: that of the context, or of the one that it is a green part
 * of. */
struct bfc_arena *bfc_open_arena(const struct bfc_driver *driver, CUcontext context,
                                 unsigned long long id, enum bfc_forward_reason *reason) {
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
