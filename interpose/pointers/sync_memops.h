/*
 * CU_POINTER_ATTRIBUTE_SYNC_MEMOPS of pooled and imported blocks.
 *
 * The driver has it by allocation. That would be a region, which a block shares with others, or
 * pages, of which the driver refuses it. So the driver's own stays off: what the program sets is
 * stored with the block, and a synchronous copy or set (interpose/driver/synchronous_calls.h) of a
 * block that has it waits for its stream. Thread-safe.
 */
#ifndef BFC_INTERPOSE_SYNC_MEMOPS_H
#define BFC_INTERPOSE_SYNC_MEMOPS_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/pointers/pointer_lookup.h"

/* Whether it is set for a block that is pooled or imported. */
bool bfc_sync_memops_is_set(const struct bfc_pointer *span);

/* Sets or clears it for such a block; the errors are the driver's own. */
CUresult bfc_sync_memops_set(const struct bfc_driver *driver, const struct bfc_pointer *span,
                             CUdeviceptr pointer, bool on);

/* The driver has set it for all that lies around such a block, as it should for the block alone. */
void bfc_sync_memops_narrow(const struct bfc_driver *driver, const struct bfc_pointer *span,
                            CUdeviceptr pointer);

extern bool bfc_sync_memops_used HIDDEN; /* once true, it stays true */

/* Whether any block ever had it. */
static inline bool bfc_sync_memops_is_used(void) {
    return bfc_load_relaxed(&bfc_sync_memops_used);
}

/*
 * After a synchronous call that wrote at `to` and read at `from` (0: nothing on the device), in the
 * current context's default stream: waits for it, if either block has SYNC_MEMOPS.
 */
CUresult bfc_sync_memops_wait(const struct bfc_driver *driver, CUdeviceptr to, CUdeviceptr from,
                              bool per_thread);

#endif
