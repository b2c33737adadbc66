/*
 * Frees while a stream capture is under way anywhere in the process. No fence may be recorded then,
 * so the freed block is deferred: it is free, but has no fence, and is not handed out.
 *
 * A thread that captures do not forbid to free waits as the driver's own free does: in mode sync
 * always, else if many bytes are deferred. Blocks that stay deferred get a fence when the last
 * capture has ended. docs/internals/safety.md says why this is safe. Thread-safe.
 */
#ifndef BFC_INTERPOSE_FREE_WHILE_CAPTURING_H
#define BFC_INTERPOSE_FREE_WHILE_CAPTURING_H

#include "interpose/arena/state.h"
#include "interpose/context/capture.h"

/* Frees a block of the arena while `state` is not BFC_CAPTURE_NONE. A thread that the capture bars
 * from freeing gets the driver's own error, and the block stays the program's. */
CUresult bfc_reuse_free_while_capturing(const struct bfc_driver *driver, struct bfc_arena *arena,
                                        CUdeviceptr pointer, enum bfc_capture_state state);

/* Frees a block for which no fence can be recorded: waits as the driver's own free does, or defers
 * the block. The caller must be a thread that captures do not bar from freeing. */
CUresult bfc_reuse_free_unfenced(const struct bfc_driver *driver, struct bfc_arena *arena,
                                 CUdeviceptr pointer);

/* Gives deferred blocks a fence, if nothing captures. The fence covers the blocks that were
 * deferred before it was recorded, because their work was submitted by then; blocks that are
 * deferred meanwhile stay deferred until the next call. */
void bfc_reuse_fence_deferred(const struct bfc_driver *driver, struct bfc_arena *arena);

/* Gives deferred blocks a fence, as bfc_reuse_fence_deferred does; if no fence can be recorded,
 * waits as the driver's own free does. */
void bfc_reuse_settle_deferred(const struct bfc_driver *driver, struct bfc_arena *arena);

/* Makes all blocks ready that were free before the call, even those without a fence, and those
 * whose fence may not be queried during a capture. For this it waits as the driver's own free does,
 * in the arena's context and in each peer. The caller must be a thread that no capture bars from
 * freeing. If the device has too little memory for such a wait, or a peer cannot be waited for, no
 * block becomes ready. */
void bfc_reuse_make_all_ready(const struct bfc_driver *driver, struct bfc_arena *arena);

/* To be called when captures have ended: gives a fence to the blocks that were freed during the
 * captures, in all arenas. */
void bfc_reuse_after_captures(const struct bfc_driver *driver);

#endif
