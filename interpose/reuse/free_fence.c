/* The fence of a free: errors, and whom the fence must cover. */
#include "interpose/reuse/free_fence.h"

#include "base/atomic.h"

CUresult bfc_reuse_latch_error(struct bfc_arena *arena, CUresult result) {
    if (bfc_driver_is_fatal(result)) {
        bfc_store_relaxed(&arena->fatal, (int)result);
        bfc_store_relaxed(&arena->plain_most, 0);
    }
    return result;
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

bool bfc_reuse_is_live(struct bfc_arena *arena, CUdeviceptr pointer) {
    struct bfc_block_info block;
    return bfc_pool_find(arena->pool, pointer, &block) && block.live && block.start == pointer;
}
