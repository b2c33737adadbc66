/*
 * When a freed block may be handed out again: the three modes of free, and who may use a block.
 *
 * - sync: the host waits for the block's context at the free, as the real free does; the block is
 *   ready then, unless contexts with peer access may still use it: then it is pending until a fence
 *   over their work is complete.
 * - lazy: the free records a fence; only blocks whose fence is complete are handed out.
 * - ordered: the free records a fence; a block whose fence is not complete is handed out at once,
 *   and all later work of the context waits for the fence on the device.
 *
 * While a capture is under way, other rules hold (free_while_capturing.h). docs/internals/safety.md
 * holds the argument; tests/formal/model checks it.
 */
#ifndef BFC_INTERPOSE_FREE_MODES_H
#define BFC_INTERPOSE_FREE_MODES_H

#include "interpose/arena/state.h"

/* Frees a pooled block. On an error nothing is freed: the block, if there is one, stays the
 * program's. */
CUresult bfc_reuse_free(const struct bfc_driver *driver, struct bfc_arena *arena,
                        CUdeviceptr pointer);

/* Frees a block as bfc_reuse_free does, while nothing captures, and counts the free in the segment.
 * The program must have set no pointer attribute of the block. */
CUresult bfc_reuse_free_by_mode(const struct bfc_driver *driver, struct bfc_arena *arena,
                                CUdeviceptr pointer);

/* Does what bfc_reuse_free_by_mode does, for a block whose context is known to be the current one.
 */
CUresult bfc_reuse_free_in_current(const struct bfc_driver *driver, struct bfc_arena *arena,
                                   CUdeviceptr pointer);

/* Records a fence over the arena's context and its peers, and frees the block, which is pending
 * until that fence is complete. */
CUresult bfc_reuse_free_with_fence(const struct bfc_driver *driver, struct bfc_arena *arena,
                                   CUdeviceptr pointer);

/* As bfc_reuse_free_with_fence, with a fence over the arena's context alone. `*fence` becomes
 * BFC_NO_FENCE if none could be recorded. */
CUresult bfc_reuse_free_fenced(const struct bfc_driver *driver, struct bfc_arena *arena,
                               CUdeviceptr pointer, bfc_fence *fence);

/* Frees a pooled block in the order of a stream (cuMemFreeAsync): the block is ready once the
 * stream's work so far is complete, whatever other work is under way. On an error the block stays
 * the program's. */
CUresult bfc_reuse_free_async(const struct bfc_driver *driver, struct bfc_arena *arena,
                              CUdeviceptr pointer, CUstream stream, bool per_thread);

#endif
