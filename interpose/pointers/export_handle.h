/*
 * Handles of pooled blocks for other processes and devices: IPC handles and dma-buf descriptors.
 *
 * The driver would export a block's whole region, and an importer would read the region's first
 * block. So a feature that exports blocks gives out a handle of its own. An importer with this
 * library understands that handle; without the library, the driver refuses it.
 *
 * With BFC_IPC=off, or without such a feature, importers need no preload: from the first export on,
 * the driver itself serves all allocations of this process and exports them.
 *
 * Each function has the driver's own signature, result and thread-safety; no lock is held across a
 * driver call.
 */
#ifndef BFC_INTERPOSE_EXPORT_HANDLE_H
#define BFC_INTERPOSE_EXPORT_HANDLE_H

#include "base/atomic.h"
#include "interpose/arena/arena.h"

CUresult bfc_export_handle(const struct bfc_driver *driver, CUipcMemHandle *handle,
                           CUdeviceptr pointer);
CUresult bfc_open_handle(const struct bfc_driver *driver, CUdeviceptr *pointer,
                         CUipcMemHandle handle, unsigned flags,
                         CUresult (*real)(CUdeviceptr *, CUipcMemHandle, unsigned));
CUresult bfc_close_handle(const struct bfc_driver *driver, CUdeviceptr pointer);
CUresult bfc_export_range(const struct bfc_driver *driver, void *handle, CUdeviceptr pointer,
                          size_t size, CUmemRangeHandleType type, unsigned long long flags);

/* Checks an address that the program passes to calls such as cuMemMap and cuMemUnmap. Returns the
 * address itself, or, if a part of the range is pooled or imported, an address for which the driver
 * refuses every such call, as it does for memory from cudaMalloc. A pool's addresses may have pages
 * behind them, which the program must not get hold of, unmap or map over. */
CUdeviceptr bfc_mappable(CUdeviceptr pointer, size_t bytes);

/* whether an IPC handle of the driver's own was ever asked for (BFC_IPC=off) */
extern bool bfc_has_exported_native;

/* Whether the driver itself must serve allocations, because BFC_IPC=off is set and this process has
 * exported a block. */
static inline bool bfc_exports_need_own(void) {
    return bfc_load_relaxed(&bfc_has_exported_native);
}

/* To be called before a free of the block at `start`. Returns the block's id if SYNC_MEMOPS or an
 * IPC handle is stored for it, which bfc_exports_freed must then remove; else 0. */
uint64_t bfc_exports_attributed(struct bfc_arena *arena, CUdeviceptr start);

/* bfc_exports_freed removes what is stored for a block that was freed (block_attributes.h),
 * bfc_exports_arena_ended what is stored for all blocks of an arena whose context has ended. */
void bfc_exports_freed(uint64_t id);
void bfc_exports_arena_ended(const struct bfc_arena *arena);

#endif
