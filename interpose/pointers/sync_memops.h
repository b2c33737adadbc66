/*
 * CU_POINTER_ATTRIBUTE_SYNC_MEMOPS of pooled and imported blocks.
 *
 * The driver would set this attribute for a block's whole region, and refuses it for pages. So the
 * driver's own attribute stays off. What the program sets is stored with the block, and after a
 * synchronous copy or set (interpose/driver/hooked_calls.h) of a block with the attribute, the
 * library waits for the stream of that call. Thread-safe.
 */
#ifndef BFC_INTERPOSE_SYNC_MEMOPS_H
#define BFC_INTERPOSE_SYNC_MEMOPS_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/pointers/pointer_lookup.h"

/* Whether SYNC_MEMOPS is set for a block that is pooled or imported. */
bool bfc_sync_memops_is_set(const struct bfc_pointer *span);

/* Sets or clears SYNC_MEMOPS for a block that is pooled or imported. The errors are the driver's
 * own, or CUDA_ERROR_OUT_OF_MEMORY: the host has no memory. */
CUresult bfc_sync_memops_set(const struct bfc_driver *driver, const struct bfc_pointer *span,
                             CUdeviceptr pointer, bool on);

/* To be called when the driver has set SYNC_MEMOPS for all memory around a pooled or imported
 * block: sets it for the block alone. */
void bfc_sync_memops_narrow(const struct bfc_driver *driver, const struct bfc_pointer *span,
                            CUdeviceptr pointer);

extern bool bfc_sync_memops_used HIDDEN; /* whether SYNC_MEMOPS was ever set for a block */

static inline bool bfc_sync_memops_is_used(void) {
    return bfc_load_relaxed(&bfc_sync_memops_used);
}

/* To be called after a synchronous call that wrote at `to` and read at `from` (0: no device memory)
 * in a default stream of the current context: waits for that stream if either block has
 * SYNC_MEMOPS. */
CUresult bfc_sync_memops_wait(const struct bfc_driver *driver, CUdeviceptr to, CUdeviceptr from,
                              bool per_thread);

#endif
