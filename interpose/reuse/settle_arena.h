/* Freed blocks become ready: what the pool asks of its upstream about fences. Thread-safe. */
#ifndef BFC_INTERPOSE_SETTLE_H
#define BFC_INTERPOSE_SETTLE_H

#include "interpose/arena/state.h"

/* The pool's questions (struct bfc_upstream). */
bfc_fence bfc_reuse_poll(void *arena);
bfc_fence bfc_reuse_wait(void *arena, bfc_fence fence, uint64_t timeout_ns);

/* Tells the pool of every fence that is complete, so that its counts are right. */
void bfc_reuse_settle(struct bfc_arena *arena);

#endif
