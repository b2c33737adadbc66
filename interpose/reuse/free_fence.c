/* Finds the contexts that the fence of a free must cover, and whose failure an error reports. */
#include "interpose/reuse/free_fence.h"

#include "base/atomic.h"
#include "interpose/arena/arena.h"
#include "interpose/config/process.h"
#include "interpose/driver/current.h"

/* Whether a context has failed. In a failed context every call returns the error. The call made
 * here is cuMemGetInfo, because it waits for nothing. */
static bool has_failed(const struct bfc_driver *driver, CUcontext context) {
    size_t unused, total;
    bool pushed;
    CUresult result = bfc_current_enter(driver, context, &pushed);
    if (result == CUDA_SUCCESS && driver->cuMemGetInfo_v2)
        result = driver->cuMemGetInfo_v2(&unused, &total);
    bfc_current_leave(driver, pushed);
    return result != CUDA_SUCCESS;
}

/* Forgets the peers whose contexts have failed. A failed context has no work under way and can
 * submit none, so no fence need cover it. */
static bool forget_failed_peers(const struct bfc_driver *driver, struct bfc_arena *arena) {
    CUcontext peers[BFC_FENCE_CONTEXTS];
    size_t count = bfc_reuse_contexts_of(arena, false, peers);
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        if (!has_failed(driver, peers[i]))
            continue;
        found = true;
        bfc_peers_forget_pair(peers[i], arena->context);
        if (arena->fences) {
            bfc_fences_suspend_context(arena->fences, peers[i]);
            bfc_fences_conclude_context(arena->fences, peers[i], true);
        }
    }
    return found;
}

bool bfc_reuse_is_of_peer(const struct bfc_driver *driver, struct bfc_arena *arena,
                          CUresult result) {
    return bfc_driver_is_fatal(result) && bfc_peers_known() &&
           !has_failed(driver, arena->context) && forget_failed_peers(driver, arena);
}

/* Keeps the error only if the arena's own context has failed, not a peer or the current context. */
CUresult bfc_reuse_latch_error(struct bfc_arena *arena, CUresult result) {
    if (bfc_driver_is_fatal(result) && has_failed(bfc_driver(), arena->context)) {
        bfc_store_relaxed(&arena->fatal, (int)result);
        bfc_store_relaxed(&arena->plain_most, 0);
    }
    return result;
}

void bfc_reuse_note_failed(CUresult result) {
    struct bfc_arena *arena = NULL;
    while (bfc_process_if_made() && (arena = bfc_arena_next(arena)))
        bfc_reuse_latch_error(arena, result);
}

size_t bfc_reuse_contexts_of(struct bfc_arena *arena, bool owner,
                             CUcontext contexts[BFC_FENCE_CONTEXTS]) {
    size_t count = 0;
    if (owner)
        contexts[count++] = arena->context;
    return count + bfc_peers_of(arena->context, contexts + count);
}

bool bfc_reuse_has_peers(struct bfc_arena *arena) {
    CUcontext peers[BFC_FENCE_CONTEXTS];
    return bfc_reuse_contexts_of(arena, false, peers) > 0;
}
