/* Tells the pool which fences are complete, and waits for fences, as struct bfc_upstream
 * requires. */
#include "interpose/reuse/settle_arena.h"

#include "interpose/arena/arena.h"
#include "interpose/arena/stream_frees.h"
#include "interpose/reuse/free_fence.h"
#include "interpose/reuse/free_while_capturing.h"

static bfc_fence poll_fences(const struct bfc_driver *driver, struct bfc_arena *arena) {
    return arena->fences ? bfc_fences_poll(arena->fences, driver) : BFC_NO_FENCE;
}

bfc_fence bfc_reuse_poll(void *context) {
    struct bfc_arena *arena = context;
    const struct bfc_driver *driver = bfc_driver();
    bfc_reuse_fence_deferred(driver, arena);
    bfc_stream_frees_poll(driver, arena);
    return poll_fences(driver, arena);
}

bfc_fence bfc_reuse_wait(void *context, bfc_fence fence, uint64_t timeout_ns) {
    struct bfc_arena *arena = context;
    const struct bfc_driver *driver = bfc_driver();
    CUresult error = CUDA_SUCCESS;
    if (fence == BFC_DEFERRED_FENCE)
        bfc_reuse_settle_deferred(driver, arena);
    else if (fence == BFC_NO_FENCE)
        bfc_stream_frees_wait(driver, arena, timeout_ns);
    else
        bfc_reuse_fence_deferred(driver, arena);
    if (!arena->fences || fence == BFC_DEFERRED_FENCE || fence == BFC_NO_FENCE)
        return poll_fences(driver, arena);
    bfc_fence complete = bfc_fences_wait(arena->fences, driver, fence, timeout_ns, &error);
    if (bfc_reuse_is_of_peer(driver, arena, error))
        complete = bfc_fences_wait(arena->fences, driver, fence, timeout_ns, &error);
    bfc_reuse_latch(arena, error);
    return complete;
}

/* One poll completes a bounded number of fences, so polls are repeated while they complete more. */
static bfc_fence poll_all(struct bfc_arena *arena) {
    bfc_fence complete = BFC_NO_FENCE, before;
    do {
        before = complete;
        complete = bfc_reuse_poll(arena);
    } while (complete > before);
    return complete;
}

void bfc_reuse_settle(struct bfc_arena *arena) {
    if (!bfc_arena_enter(arena))
        return;
    bfc_stream_frees_settle(bfc_driver(), arena);
    bfc_fence complete = poll_all(arena);
    if (arena->fences && bfc_fences_await_polls(arena->fences))
        complete = poll_all(arena);
    bfc_arena_leave(arena);
    bfc_pool_complete(arena->pool, complete);
}
