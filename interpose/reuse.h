/*
 * When a freed block may be handed out again: the three modes of free, and who may use a block.
 *
 *   sync     the host waits for the block's context at the free, as the real free does; the block
 * is clean then, unless contexts with peer access may still use it: then it is dirty under their
 * mark. lazy     the free leaves a mark; only blocks whose mark is complete are handed out. ordered
 * the free leaves a mark; a block whose mark is not complete is handed out at once, and all later
 *            work of the context is made to wait for the mark on the device.
 *
 * While a capture is under way nothing may be recorded: blocks freed then are in limbo until the
 * last capture has ended. docs/safety.md holds the argument; tests/model checks it.
 */
#ifndef BFC_INTERPOSE_REUSE_H
#define BFC_INTERPOSE_REUSE_H

#include "interpose/domain.h"

/* How a block is to be had. */
enum bfc_reuse_how {
    BFC_REUSE_ANY,
    BFC_REUSE_CLEAN, /* something captures: no dirty one */
    BFC_REUSE_THERE, /* without growing, waiting or counting a failure */
};

/* Hands out a block of the domain's pool. The driver's error, or that of the pool in `status`. */
CUresult bfc_reuse_allocate(const struct bfc_driver *driver, struct bfc_domain *domain,
                            size_t bytes, enum bfc_reuse_how how, CUdeviceptr *pointer,
                            enum bfc_status *status);

/* Frees a pooled block. On an error it stays the program's, but for one that is not its to free. */
CUresult bfc_reuse_free(const struct bfc_driver *driver, struct bfc_domain *domain,
                        CUdeviceptr pointer);

/* The same for a block without notes, while nothing captures; and the segment is told. */
CUresult bfc_reuse_free_plainly(const struct bfc_driver *driver, struct bfc_domain *domain,
                                CUdeviceptr pointer);

/* And when the block's context is known to be the current one. */
CUresult bfc_reuse_free_here(const struct bfc_driver *driver, struct bfc_domain *domain,
                             CUdeviceptr pointer);

/* The same in the order of a stream: never a host wait of ours where the driver can mark. */
CUresult bfc_reuse_free_async(const struct bfc_driver *driver, struct bfc_domain *domain,
                              CUdeviceptr pointer, CUstream stream, bool per_thread);

/* The pool's questions (struct bfc_source). */
bfc_mark bfc_reuse_poll(void *domain);
bfc_mark bfc_reuse_wait(void *domain, bfc_mark mark, uint64_t timeout_ns);

/* Tells the pool of every mark that is complete, so that its counts are right. */
void bfc_reuse_settle(struct bfc_domain *domain);

/* Captures have ended: marks what was freed meanwhile. */
void bfc_reuse_after_captures(const struct bfc_driver *driver);

/* Others than this context's work are to use the block from now on (IPC, dma-buf, registration). */
void bfc_reuse_show(const struct bfc_driver *driver, struct bfc_domain *domain,
                    CUdeviceptr pointer);

/* The current context is to get access to the memory of `owner`: `real` does it. */
CUresult bfc_reuse_enable_peer(const struct bfc_driver *driver, CUcontext owner, unsigned flags);

/*
 * The current context, `accessor`, has mapped another process's memory, which enables peer access
 * if the memory is another device's. An error: the host has no memory, or the peers are too many.
 */
CUresult bfc_reuse_peer_opened(const struct bfc_driver *driver, CUcontext accessor,
                               CUdeviceptr mapped);

#endif
