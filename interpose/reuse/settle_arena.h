/* Finds out which fences are complete, so that freed blocks become ready. Thread-safe. */
#ifndef BFC_INTERPOSE_SETTLE_H
#define BFC_INTERPOSE_SETTLE_H

#include "interpose/arena/state.h"

/* The functions poll and wait of struct bfc_upstream; `arena` is a struct bfc_arena. */
bfc_fence bfc_reuse_poll(void *arena);
bfc_fence bfc_reuse_wait(void *arena, bfc_fence fence, uint64_t timeout_ns);

/* Reports every complete fence to the pool, so that the pool's counts are right. */
void bfc_reuse_settle(struct bfc_arena *arena);

#endif
