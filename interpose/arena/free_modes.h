/*
 * When a freed block may be handed out again: the three modes of free, and who may use a block.
 *
 * - sync: the host waits for the block's context at the free, as the real free does; the block is
 *   ready then, unless contexts with peer access may still use it: then it is pending under their
 *   fence.
 * - lazy: the free records a fence; only blocks whose fence is complete are handed out.
 * - ordered: the free records a fence; a block whose fence is not complete is handed out at once,
 *   and all later work of the context waits for the fence on the device.
 *
 * While a capture is under way nothing may be recorded. A thread that may free nevertheless waits
 * as the driver's own free does: in sync at each free, else when much has been deferred;
 * blocks freed meanwhile stay deferred until then or until the last capture has ended.
 * docs/safety.md holds the argument; tests/formal/model checks it.
 */
#ifndef BFC_INTERPOSE_FREE_MODES_H
#define BFC_INTERPOSE_FREE_MODES_H

#include "base/compiler.h"
#include "interpose/arena/arena.h"
#include "interpose/context/contexts.h"

/* Which blocks an allocation may take. */
enum bfc_reuse_how {
    BFC_REUSE_ANY,
    BFC_REUSE_READY, /* something captures: no pending one */
    BFC_REUSE_THERE, /* without growing, waiting or counting a failure */
};

/* Hands out a block of the arena's pool. The driver's error, or that of the pool in `status`. */
CUresult bfc_reuse_allocate(const struct bfc_driver *driver, struct bfc_arena *arena, size_t bytes,
                            enum bfc_reuse_how how, CUdeviceptr *pointer, enum bfc_status *status);

/* Frees a pooled block. On an error it stays the program's, but for one that is not its to free. */
CUresult bfc_reuse_free(const struct bfc_driver *driver, struct bfc_arena *arena,
                        CUdeviceptr pointer);

/* The same for a block without notes, while nothing captures; and the segment is told. */
CUresult bfc_reuse_free_by_mode(const struct bfc_driver *driver, struct bfc_arena *arena,
                                CUdeviceptr pointer);

/* And when the block's context is known to be the current one. */
CUresult bfc_reuse_free_in_current(const struct bfc_driver *driver, struct bfc_arena *arena,
                                   CUdeviceptr pointer);

/* The same in the order of a stream, and behind nothing else; no wait of ours. */
CUresult bfc_reuse_free_async(const struct bfc_driver *driver, struct bfc_arena *arena,
                              CUdeviceptr pointer, CUstream stream, bool per_thread);

/* The pool's questions (struct bfc_upstream). */
bfc_fence bfc_reuse_poll(void *arena);
bfc_fence bfc_reuse_wait(void *arena, bfc_fence fence, uint64_t timeout_ns);

/* Tells the pool of every fence that is complete, so that its counts are right. */
void bfc_reuse_settle(struct bfc_arena *arena);

/* Captures have ended: gives a fence to what was freed meanwhile. */
void bfc_reuse_after_captures(const struct bfc_driver *driver);

/*
 * Blocks that were handed out before their fences were complete are ordered only behind work of
 * their own context. So before anybody else can touch one, the host waits for those fences. If it
 * cannot, nobody else may.
 */
CUresult bfc_reuse_wait_for_handed_out(const struct bfc_driver *driver, struct bfc_arena *arena);

/*
 * The context may be a new one: before it can do work, the host waits for what mode ordered has
 * handed out, which is ordered behind its former work in its own context only.
 */
void bfc_reuse_context_found(const struct bfc_driver *driver, CUcontext context);
static inline void bfc_reuse_context_made(const struct bfc_driver *driver, CUcontext context) {
    if (UNLIKELY(!bfc_contexts_has(context)))
        bfc_reuse_context_found(driver, context);
}

#endif
