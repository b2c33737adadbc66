/*
 * When a freed block may be handed out again: the three modes of free, and who may use a block.
 *
 * - sync: at the free the host waits for the block's context, as the driver's own free does. Then
 *   the block is ready, or if peers may still use it, pending until a fence over their work is
 *   complete.
 * - lazy: the free records a fence; only blocks whose fence is complete are handed out.
 * - ordered: the free records a fence; a block whose fence is not complete is handed out at once,
 *   and all later work of the context waits for the fence on the device.
 *
 * While a capture is under way, other rules hold (free_while_capturing.h). docs/internals/safety.md
 * says why this is safe; tests/formal/model checks it.
 */
#ifndef BFC_INTERPOSE_FREE_MODES_H
#define BFC_INTERPOSE_FREE_MODES_H

#include "interpose/arena/state.h"

/* Frees a pooled block. On an error nothing is freed: the block stays the program's, if there is a
 * block at the address. */
CUresult bfc_reuse_free(const struct bfc_driver *driver, struct bfc_arena *arena,
                        CUdeviceptr pointer);

/* Frees a block as bfc_reuse_free does, while nothing captures, and counts the free in the segment.
 * No block may have attributes (block_attributes.h): this function would not remove them. */
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

/* If bfc_pool_begin_surplus says so, waits for the work of the arena's context and gives regions
 * back. To be called before the free of `pointer`; does nothing if no live block starts there, or
 * in a process that has begun a capture. */
void bfc_reuse_give_back_surplus(const struct bfc_driver *driver, struct bfc_arena *arena,
                                 CUdeviceptr pointer);

/* Does what bfc_reuse_free_with_fence does, with a fence over the arena's context alone. Stores the
 * fence in `*fence`, or BFC_NO_FENCE if none could be recorded. */
CUresult bfc_reuse_free_fenced(const struct bfc_driver *driver, struct bfc_arena *arena,
                               CUdeviceptr pointer, bfc_fence *fence);

/* Frees a pooled block in the order of a stream (cuMemFreeAsync): the block is ready once the
 * stream's work so far is complete, whatever other work is under way. On an error the block stays
 * the program's. */
CUresult bfc_reuse_free_async(const struct bfc_driver *driver, struct bfc_arena *arena,
                              CUdeviceptr pointer, CUstream stream, bool per_thread);

#endif
