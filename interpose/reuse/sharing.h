/*
 * Use of pooled memory by others than the context of the pool: by other processes and devices, and
 * by contexts with peer access. Before any of them can use a block, the host waits for the fences
 * of blocks that mode ordered has handed out (bfc_reuse_wait_for_handed_out). Thread-safe.
 */
#ifndef BFC_INTERPOSE_SHARING_H
#define BFC_INTERPOSE_SHARING_H

#include "interpose/arena/arena.h"

/* To be called before anything but work of the block's own context uses a block (by IPC, dma-buf or
 * registration). If this returns an error of the driver, nothing else must use the block. */
CUresult bfc_share_block(const struct bfc_driver *driver, struct bfc_arena *arena,
                         CUdeviceptr pointer);

/* Gives the current context access to the memory of `owner`, as cuCtxEnablePeerAccess does. */
CUresult bfc_share_enable_peer(const struct bfc_driver *driver, CUcontext owner, unsigned flags);

/* Takes access to the memory of `owner` from the current context, as cuCtxDisablePeerAccess does.
 */
CUresult bfc_share_disable_peer(const struct bfc_driver *driver, CUcontext owner);

/* Notes that the current context, `accessor`, has mapped another process's memory. If that is on
 * another device, the driver has enabled peer access, so `accessor` becomes a peer there. An error
 * means that the host lacks memory, the peers are too many, or pages cannot be made accessible. */
CUresult bfc_share_peer_opened(const struct bfc_driver *driver, CUcontext accessor,
                               CUdeviceptr mapped);

#endif
