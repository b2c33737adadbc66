/*
 * Who may use pooled memory beside its own context: other processes and devices, contexts with peer
 * access. Before any of them can, the host waits for what mode ordered has handed out
 * (bfc_reuse_wait_for_handed_out). Thread-safe.
 */
#ifndef BFC_INTERPOSE_SHARING_H
#define BFC_INTERPOSE_SHARING_H

#include "interpose/arena/arena.h"

/*
 * Others than this context's work are to use the block from now on (IPC, dma-buf, registration). On
 * an error, the driver's, they must not.
 */
CUresult bfc_share_block(const struct bfc_driver *driver, struct bfc_arena *arena,
                         CUdeviceptr pointer);

/* The current context is to get access to the memory of `owner`: `real` does it. */
CUresult bfc_share_enable_peer(const struct bfc_driver *driver, CUcontext owner, unsigned flags);

/* The current context is to lose it. */
CUresult bfc_share_disable_peer(const struct bfc_driver *driver, CUcontext owner);

/*
 * The current context, `accessor`, has mapped another process's memory, which enables peer access
 * if the memory is another device's. An error: the host has no memory, or the peers are too many.
 */
CUresult bfc_share_peer_opened(const struct bfc_driver *driver, CUcontext accessor,
                               CUdeviceptr mapped);

#endif
