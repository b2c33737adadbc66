/* Exports pooled blocks to other processes and devices. */
#include "interpose/pointers/export_handle.h"

#include <unistd.h>

#include "base/atomic.h"
#include "interpose/config/process.h"
#include "interpose/pointers/block_attributes.h"
#include "interpose/pointers/pointer_lookup.h"
#include "interpose/reuse/sharing.h"
#include "interpose/table/feature.h"

bool bfc_has_exported_native;

/* Returns the feature that exports blocks; NULL: this build has none. */
static const struct bfc_feature *find_exporter(void) {
    BFC_FOR_EACH_FEATURE(feature)
    if ((*feature)->export_block)
        return *feature;
    return NULL;
}

/* An importer of the driver's handle of a region gets the region's start, so the handle serves the
 * block there and no other; pages have no handle. From the first export on, allocations are the
 * driver's; but a block that the pool handed out before cannot be moved, so its export may fail. */
static CUresult export_native(const struct bfc_driver *driver, CUipcMemHandle *handle,
                              const struct bfc_pointer *span) {
    if (span->start == span->block.region_start && !span->block.paged) {
        CUresult result = bfc_share_block(driver, span->arena, span->start);
        return result == CUDA_SUCCESS ? driver->cuIpcGetMemHandle(handle, span->start) : result;
    }
    bfc_log(BFC_LOG_ERROR,
            "cuIpcGetMemHandle: with BFC_IPC=off%s memory cannot be exported that was allocated "
            "before the process's first export; allocate it after that, preload the importer and "
            "set BFC_IPC=pooled, or run this program with BFC_DISABLE=1",
            find_exporter() ? "" : ", or in a library without the feature share,");
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult bfc_export_handle(const struct bfc_driver *driver, CUipcMemHandle *handle,
                           CUdeviceptr pointer) {
    const struct bfc_process *process = bfc_process_if_made();
    const struct bfc_feature *exporter = find_exporter();
    bool plainly = process && process->active && (!exporter || process->options.ipc == BFC_IPC_OFF);
    struct bfc_pointer span;
    bfc_pointer_lookup(pointer, &span);
    if (plainly) {
        bfc_store_relaxed(&bfc_has_exported_native, true);
        bfc_process_no_longer_usual();
    }
    if (span.kind != BFC_POINTER_POOLED)
        return driver->cuIpcGetMemHandle(handle,
                                         span.kind == BFC_POINTER_GONE ? BFC_NOWHERE : pointer);
    if (bfc_pointer_is_spilled(&span))
        return bfc_pointer_refuse_spilled("cuIpcGetMemHandle");
    return plainly ? export_native(driver, handle, &span)
                   : exporter->export_block(driver, handle, &span);
}

CUresult bfc_open_handle(const struct bfc_driver *driver, CUdeviceptr *pointer,
                         CUipcMemHandle handle, unsigned flags,
                         CUresult (*real)(CUdeviceptr *, CUipcMemHandle, unsigned)) {
    const struct bfc_feature *exporter = find_exporter();
    return exporter ? exporter->open_import(driver, pointer, handle, flags, real)
                    : real(pointer, handle, flags);
}

CUresult bfc_close_handle(const struct bfc_driver *driver, CUdeviceptr pointer) {
    const struct bfc_feature *exporter = find_exporter();
    return exporter ? exporter->close_import(driver, pointer)
                    : driver->cuIpcCloseMemHandle(pointer);
}

static uint64_t page_size(void) {
    long size = sysconf(_SC_PAGESIZE);
    return size > 0 ? (uint64_t)size : 4096;
}

static bool is_within(CUdeviceptr pointer, size_t size, const struct bfc_pointer *span,
                      uint64_t page) {
    CUdeviceptr start = span->start & ~(page - 1);
    CUdeviceptr end = (span->start + span->size + page - 1) & ~(page - 1);
    return pointer >= start && pointer < end && size <= end - pointer;
}

/* Finds the pooled block that a range stands for. Ranges consist of pages of the host's page size;
 * a block need not begin or end at one, so programs round its start down and its end up. The range
 * stands for a block if a part of the block lies in the range's first page, and the block, rounded
 * this way, holds the whole range. */
static bool find_exported(CUdeviceptr pointer, size_t size, struct bfc_pointer *span) {
    uint64_t page = page_size();
    for (uint64_t step = 0; step < page; step += BFC_GRANULE) {
        bfc_pointer_lookup(pointer + step, span);
        if (span->kind == BFC_POINTER_POOLED && is_within(pointer, size, span, page))
            return true;
    }
    return false;
}

/* If the range is in a pool but not within one live block, the driver's error is that for address
 * 0, where no memory is. (BFC_NOWHERE is not aligned, for which the driver has another error.) */
CUresult bfc_export_range(const struct bfc_driver *driver, void *handle, CUdeviceptr pointer,
                          size_t size, CUmemRangeHandleType type, unsigned long long flags) {
    struct bfc_pointer span;
    if (!bfc_process_if_made())
        return driver->cuMemGetHandleForAddressRange(handle, pointer, size, type, flags);
    bool found = find_exported(pointer, size, &span);
    if (found && bfc_pointer_is_spilled(&span))
        return bfc_pointer_refuse_spilled("cuMemGetHandleForAddressRange");
    if (found) {
        bfc_store_release(&span.arena->registered, true);
        CUresult result = bfc_share_block(driver, span.arena, span.start);
        if (result != CUDA_SUCCESS)
            return result;
    } else {
        bfc_pointer_lookup(pointer, &span);
        if (span.kind == BFC_POINTER_POOLED || span.kind == BFC_POINTER_GONE)
            pointer = 0;
    }
    return driver->cuMemGetHandleForAddressRange(handle, pointer, size, type, flags);
}

static bool is_foreign(CUdeviceptr pointer) {
    struct bfc_pointer span;
    bfc_pointer_lookup(pointer, &span);
    return span.kind == BFC_POINTER_FOREIGN;
}

/* Only the range's two ends are looked at. If both are the program's, either the whole range is, or
 * a part of it is not mapped, so that the driver refuses it. */
CUdeviceptr bfc_mappable(CUdeviceptr pointer, size_t bytes) {
    bool foreign = is_foreign(pointer) && (bytes == 0 || is_foreign(pointer + bytes - 1));
    return foreign ? pointer : BFC_NOWHERE;
}

uint64_t bfc_exports_attributed(struct bfc_arena *arena, CUdeviceptr start) {
    struct bfc_block_info block;
    struct bfc_block_attributes attributes;
    if (!bfc_block_attributes_exist() || !bfc_pool_find(arena->pool, start, &block) ||
        !block.live || block.start != start)
        return 0;
    return bfc_block_attributes_find(block.id, &attributes) ? block.id : 0;
}

static void retire_handle(const struct bfc_block_attributes *attributes) {
    if (attributes->exported)
        BFC_TELL_FEATURES(export_ended, &attributes->handle);
}

void bfc_exports_freed(uint64_t id) {
    struct bfc_block_attributes attributes;
    if (bfc_block_attributes_take(id, &attributes))
        retire_handle(&attributes);
}

void bfc_exports_arena_ended(const struct bfc_arena *arena) {
    struct bfc_block_attributes attributes;
    while (bfc_block_attributes_take_of(arena, &attributes))
        retire_handle(&attributes);
}
