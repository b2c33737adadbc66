/*
 * CUDA IPC of pooled blocks: exports of this process's blocks, and blocks of other processes' pools
 * that this process has opened (imported).
 *
 * An export is a token (token.h), valid until the block is freed. Pages have no handle that could
 * be exported, so importers ask the exporter for file descriptors of them (page_exports.h).
 *
 * The driver maps whole regions. A further block of a mapped region is opened without a driver
 * call. If the program opens a block that is open already, the driver is called and decides: old
 * drivers refuse to open a handle twice, new ones count how often it is open. The driver unmaps the
 * region after the last close. A block in pages has a mapping of its own (page_imports.h), and no
 * driver call is needed to open the block again.
 *
 * Opening and closing return what the driver's functions would return. Thread-safe; no lock is held
 * across a driver call.
 */
#ifndef BFC_INTERPOSE_SHARE_H
#define BFC_INTERPOSE_SHARE_H

#include "interpose/pointers/pointer_lookup.h"

/* Exports the block that `span` describes, by a token, which is written to `handle` on success
 * only. Errors: the driver's, or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult bfc_export_token(const struct bfc_driver *driver, CUipcMemHandle *handle,
                          const struct bfc_pointer *span);

/* Makes a token invalid, because its block was freed. */
void bfc_export_token_ended(const CUipcMemHandle *handle);

CUresult bfc_import_open(const struct bfc_driver *driver, CUdeviceptr *pointer,
                         CUipcMemHandle handle, unsigned flags,
                         CUresult (*real)(CUdeviceptr *, CUipcMemHandle, unsigned));
CUresult bfc_import_close(const struct bfc_driver *driver, CUdeviceptr pointer);

/* Describes what lies at an address in imported memory: a block that is open, or none
 * (BFC_POINTER_GONE). False: no memory was imported there, and `found` stays BFC_POINTER_FOREIGN,
 * as the caller has set it. */
bool bfc_imports_find(CUdeviceptr address, struct bfc_pointer *found);

/* Reads and sets CU_POINTER_ATTRIBUTE_SYNC_MEMOPS of a block that this process has opened; `id` is
 * the id of the opened block, as bfc_imports_find sets it. */
bool bfc_import_sync_memops(uint64_t id);
void bfc_import_set_sync_memops(uint64_t id, bool on);

/* Forgets the mappings that were opened in a context that has ended. The driver has unmapped the
 * regions, but pages outlive the context: bfc_imports_collect unmaps them. */
void bfc_imports_context_ended(CUcontext context);
void bfc_imports_collect(const struct bfc_driver *driver);

#endif
