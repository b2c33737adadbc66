/*
 * Frees while a stream capture is under way, anywhere in the process: nothing may be recorded then,
 * so the freed block is deferred: it is free, but has no fence, and is not handed out.
 *
 * A thread that may free nevertheless waits as the driver's own free does: in mode sync at each
 * free, else when the deferred blocks are many bytes. Otherwise they get their fence when the last
 * capture has ended. docs/internals/safety.md holds the argument. Thread-safe.
 */
#ifndef BFC_INTERPOSE_FREE_WHILE_CAPTURING_H
#define BFC_INTERPOSE_FREE_WHILE_CAPTURING_H

#include "interpose/arena/state.h"
#include "interpose/context/capture.h"

/* Frees a block of the arena while `state` is not BFC_CAPTURE_NONE. A thread that the capture bars
 * from freeing gets the driver's own error, and the block stays the program's. */
CUresult bfc_reuse_free_while_capturing(const struct bfc_driver *driver, struct bfc_arena *arena,
                                        CUdeviceptr pointer, enum bfc_capture_state state);

/* Frees a block for which no fence could be recorded, in a thread that may free. */
CUresult bfc_reuse_free_unfenced(const struct bfc_driver *driver, struct bfc_arena *arena,
                                 CUdeviceptr pointer);

/* Gives deferred blocks a fence, if nothing captures. The fence covers the blocks that were
 * deferred before it was recorded, because their work was submitted by then; those deferred
 * meanwhile stay so until the next call. */
void bfc_reuse_fence_deferred(const struct bfc_driver *driver, struct bfc_arena *arena);

/* Gives deferred blocks a fence, as bfc_reuse_fence_deferred does; if no fence can be recorded,
 * waits as the driver's own free does. */
void bfc_reuse_settle_deferred(const struct bfc_driver *driver, struct bfc_arena *arena);

/* Makes all blocks ready that were free before the call, even those that have no fence, or a fence
 * that may not be queried now: waits as the driver's own free does, in the arena's context and in
 * each context that has access to its memory. The caller must be a thread that no capture bars from
 * freeing. If there is no device memory to wait with, or one of these contexts cannot be waited
 * for, no block becomes ready. */
void bfc_reuse_make_all_ready(const struct bfc_driver *driver, struct bfc_arena *arena);

/* To be called when captures have ended: gives the blocks that were freed meanwhile a fence, in all
 * arenas. */
void bfc_reuse_after_captures(const struct bfc_driver *driver);

#endif
