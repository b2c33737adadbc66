/* The hooks: exported wrappers without logic, and the tables that lead programs to them. */
#include "interpose/hooks.h"

#include <stdio.h>
#include <string.h>

#include "interpose/attributes.h"
#include "interpose/bypass.h"
#include "interpose/capture.h"
#include "interpose/ends.h"
#include "interpose/exports.h"
#include "interpose/green.h"
#include "interpose/imports.h"
#include "interpose/memory.h"
#include "interpose/reuse.h"
#include "interpose/segment.h"

BFC_HOOK(cuMemAlloc_v2, (CUdeviceptr * pointer, size_t bytes)) {
    return bfc_allocate(pointer, bytes);
}

BFC_HOOK(cuMemFree_v2, (CUdeviceptr pointer)) {
    return bfc_free(pointer);
}

BFC_HOOK(cuMemFreeAsync, (CUdeviceptr pointer, CUstream stream)) {
    BFC_FIND_DRIVER(driver, cuMemFreeAsync);
    return bfc_free_async(driver, pointer, stream, false);
}

BFC_HOOK(cuMemFreeAsync_ptsz, (CUdeviceptr pointer, CUstream stream)) {
    BFC_FIND_DRIVER(driver, cuMemFreeAsync_ptsz);
    return bfc_free_async(driver, pointer, stream, true);
}

BFC_HOOK(cuMemGetInfo_v2, (size_t * free_bytes, size_t *total_bytes)) {
    BFC_FIND_DRIVER(driver, cuMemGetInfo_v2);
    return bfc_memory_info(driver, free_bytes, total_bytes);
}

BFC_HOOK(cuMemGetAddressRange_v2, (CUdeviceptr * start, size_t *size, CUdeviceptr pointer)) {
    BFC_FIND_DRIVER(driver, cuMemGetAddressRange_v2);
    return bfc_address_range(driver, start, size, pointer);
}

BFC_HOOK(cuMemGetHandleForAddressRange, (void *handle, CUdeviceptr pointer, size_t size,
                                         CUmemRangeHandleType type, bfc_cuda_flags flags)) {
    BFC_FIND_DRIVER(driver, cuMemGetHandleForAddressRange);
    return bfc_export_range(driver, handle, pointer, size, type, flags);
}

BFC_HOOK(cuPointerGetAttribute, (void *data, CUpointer_attribute attribute, CUdeviceptr pointer)) {
    BFC_FIND_DRIVER(driver, cuPointerGetAttribute);
    return bfc_pointer_attribute(driver, data, attribute, pointer);
}

BFC_HOOK(cuPointerGetAttributes,
         (unsigned count, CUpointer_attribute *attributes, void **data, CUdeviceptr pointer)) {
    BFC_FIND_DRIVER(driver, cuPointerGetAttributes);
    return bfc_pointer_attributes(driver, count, attributes, data, pointer);
}

BFC_HOOK(cuPointerSetAttribute,
         (const void *value, CUpointer_attribute attribute, CUdeviceptr pointer)) {
    BFC_FIND_DRIVER(driver, cuPointerSetAttribute);
    return bfc_set_pointer_attribute(driver, value, attribute, pointer);
}

BFC_HOOK(cuIpcGetMemHandle, (CUipcMemHandle * handle, CUdeviceptr pointer)) {
    BFC_FIND_DRIVER(driver, cuIpcGetMemHandle);
    return bfc_export_handle(driver, handle, pointer);
}

BFC_HOOK(cuIpcOpenMemHandle, (CUdeviceptr * pointer, CUipcMemHandle handle, unsigned flags)) {
    BFC_FIND_DRIVER(driver, cuIpcOpenMemHandle);
    return bfc_import_open(driver, pointer, handle, flags, driver->cuIpcOpenMemHandle);
}

BFC_HOOK(cuIpcOpenMemHandle_v2, (CUdeviceptr * pointer, CUipcMemHandle handle, unsigned flags)) {
    BFC_FIND_DRIVER(driver, cuIpcOpenMemHandle_v2);
    return bfc_import_open(driver, pointer, handle, flags, driver->cuIpcOpenMemHandle_v2);
}

BFC_HOOK(cuIpcCloseMemHandle, (CUdeviceptr pointer)) {
    BFC_FIND_DRIVER(driver, cuIpcCloseMemHandle);
    return bfc_import_close(driver, pointer);
}

BFC_HOOK(cuCtxDestroy, (CUcontext context)) {
    BFC_FIND_DRIVER(driver, cuCtxDestroy);
    return bfc_context_destroy(driver, context, driver->cuCtxDestroy);
}

BFC_HOOK(cuCtxDestroy_v2, (CUcontext context)) {
    BFC_FIND_DRIVER(driver, cuCtxDestroy_v2);
    return bfc_context_destroy(driver, context, driver->cuCtxDestroy_v2);
}

BFC_HOOK(cuDevicePrimaryCtxRelease, (CUdevice device)) {
    BFC_FIND_DRIVER(driver, cuDevicePrimaryCtxRelease);
    return bfc_primary_release(driver, device, driver->cuDevicePrimaryCtxRelease);
}

BFC_HOOK(cuDevicePrimaryCtxRelease_v2, (CUdevice device)) {
    BFC_FIND_DRIVER(driver, cuDevicePrimaryCtxRelease_v2);
    return bfc_primary_release(driver, device, driver->cuDevicePrimaryCtxRelease_v2);
}

BFC_HOOK(cuDevicePrimaryCtxReset, (CUdevice device)) {
    BFC_FIND_DRIVER(driver, cuDevicePrimaryCtxReset);
    return bfc_primary_reset(driver, device, driver->cuDevicePrimaryCtxReset);
}

BFC_HOOK(cuDevicePrimaryCtxReset_v2, (CUdevice device)) {
    BFC_FIND_DRIVER(driver, cuDevicePrimaryCtxReset_v2);
    return bfc_primary_reset(driver, device, driver->cuDevicePrimaryCtxReset_v2);
}

BFC_HOOK(cuCtxFromGreenCtx, (CUcontext * context, CUgreenCtx green)) {
    BFC_FIND_DRIVER(driver, cuCtxFromGreenCtx);
    CUresult result = driver->cuCtxFromGreenCtx(context, green);
    if (result == CUDA_SUCCESS)
        bfc_green_made(driver, *context);
    return result;
}

BFC_HOOK(cuCtxEnablePeerAccess, (CUcontext owner, unsigned flags)) {
    BFC_FIND_DRIVER(driver, cuCtxEnablePeerAccess);
    return bfc_reuse_enable_peer(driver, owner, flags);
}

/* The real call that begins a capture, alone behind the gate. */
#define BEGIN_CAPTURE(name, per_thread, mode, arguments)                                           \
    BFC_FIND_DRIVER(driver, name);                                                                 \
    bfc_capture_begin();                                                                           \
    CUresult result = driver->name arguments;                                                      \
    bfc_capture_began(stream, per_thread, mode, result);                                           \
    return result

BFC_HOOK(cuStreamBeginCapture, (CUstream stream)) {
    BEGIN_CAPTURE(cuStreamBeginCapture, false, CU_STREAM_CAPTURE_MODE_GLOBAL, (stream));
}

BFC_HOOK(cuStreamBeginCapture_ptsz, (CUstream stream)) {
    BEGIN_CAPTURE(cuStreamBeginCapture_ptsz, true, CU_STREAM_CAPTURE_MODE_GLOBAL, (stream));
}

BFC_HOOK(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode)) {
    BEGIN_CAPTURE(cuStreamBeginCapture_v2, false, mode, (stream, mode));
}

BFC_HOOK(cuStreamBeginCapture_v2_ptsz, (CUstream stream, CUstreamCaptureMode mode)) {
    BEGIN_CAPTURE(cuStreamBeginCapture_v2_ptsz, true, mode, (stream, mode));
}

BFC_HOOK(cuStreamBeginCaptureToGraph,
         (CUstream stream, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges,
          size_t count, CUstreamCaptureMode mode)) {
    BEGIN_CAPTURE(cuStreamBeginCaptureToGraph, false, mode,
                  (stream, graph, after, edges, count, mode));
}

BFC_HOOK(cuStreamBeginCaptureToGraph_ptsz,
         (CUstream stream, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges,
          size_t count, CUstreamCaptureMode mode)) {
    BEGIN_CAPTURE(cuStreamBeginCaptureToGraph_ptsz, true, mode,
                  (stream, graph, after, edges, count, mode));
}

static CUresult end_capture(const struct bfc_driver *driver, CUstream stream, bool per_thread,
                            CUresult result) {
    bool last = result == CUDA_SUCCESS && bfc_capture_ended(stream, per_thread);
    if (bfc_capture_review(driver) || last)
        bfc_reuse_after_captures(driver);
    return result;
}

BFC_HOOK(cuStreamEndCapture, (CUstream stream, CUgraph *graph)) {
    BFC_FIND_DRIVER(driver, cuStreamEndCapture);
    return end_capture(driver, stream, false, driver->cuStreamEndCapture(stream, graph));
}

BFC_HOOK(cuStreamEndCapture_ptsz, (CUstream stream, CUgraph *graph)) {
    BFC_FIND_DRIVER(driver, cuStreamEndCapture_ptsz);
    return end_capture(driver, stream, true, driver->cuStreamEndCapture_ptsz(stream, graph));
}

static CUresult destroy_stream(const struct bfc_driver *driver, CUstream stream,
                               CUresult (*real)(CUstream)) {
    bool last = bfc_capture_ended(stream, false);
    CUresult result = real(stream);
    if (last)
        bfc_reuse_after_captures(driver);
    return result;
}

BFC_HOOK(cuStreamDestroy, (CUstream stream)) {
    BFC_FIND_DRIVER(driver, cuStreamDestroy);
    return destroy_stream(driver, stream, driver->cuStreamDestroy);
}

BFC_HOOK(cuStreamDestroy_v2, (CUstream stream)) {
    BFC_FIND_DRIVER(driver, cuStreamDestroy_v2);
    return destroy_stream(driver, stream, driver->cuStreamDestroy_v2);
}

BFC_HOOK(cuGetProcAddress, (const char *name, void **entry, int version, bfc_cuda_flags flags)) {
    BFC_FIND_DRIVER(driver, cuGetProcAddress);
    CUresult result = driver->cuGetProcAddress(name, entry, version, flags);
    if (result == CUDA_SUCCESS && name && entry)
        *entry = bfc_replace_entry(*entry, name, version, flags);
    return result;
}

BFC_HOOK(cuGetProcAddress_v2,
         (const char *name, void **entry, int version, bfc_cuda_flags flags, int *status)) {
    BFC_FIND_DRIVER(driver, cuGetProcAddress_v2);
    CUresult result = driver->cuGetProcAddress_v2(name, entry, version, flags, status);
    if (result == CUDA_SUCCESS && name && entry)
        *entry = bfc_replace_entry(*entry, name, version, flags);
    return result;
}

#define DECLARE(name, kind, parameters, arguments, bytes) BFC_HOOK_DECLARED(name, parameters);
BFC_BYPASS_CALLS(DECLARE)
#undef DECLARE
#define DECLARE(name, parameters, arguments) BFC_HOOK_DECLARED(name, parameters);
BFC_NEEDY_CALLS(DECLARE)
#undef DECLARE

static const struct bfc_hook hooks[] = {
#define ROW(name, arguments)                                                                       \
    {#name, __extension__(void *) hook_##name, offsetof(struct bfc_driver, name)},
    BFC_HOOKED_CALLS(ROW)
#undef ROW
#define ROW(name, kind, parameters, arguments, bytes)                                              \
    {#name, __extension__(void *) hook_##name, offsetof(struct bfc_driver, name)},
        BFC_BYPASS_CALLS(ROW)
#undef ROW
#define ROW(name, parameters, arguments)                                                           \
    {#name, __extension__(void *) hook_##name, offsetof(struct bfc_driver, name)},
            BFC_NEEDY_CALLS(ROW)
#undef ROW
};
enum { HOOKS = sizeof hooks / sizeof hooks[0] };

void *bfc_hook_real(const struct bfc_driver *driver, const struct bfc_hook *hook) {
    return *(void *const *)((const char *)driver + hook->real);
}

const struct bfc_hook *bfc_hook_of_symbol(const char *name) {
    for (size_t i = 0; i < HOOKS; i++)
        if (strcmp(hooks[i].symbol, name) == 0)
            return &hooks[i];
    return NULL;
}

/*
 * The names by which cuGetProcAddress knows the same entries, should its pointers differ from
 * dlsym's: the first CUDA version in which the name means this variant, and the last.
 */
struct requested {
    char name[32];
    int first, last;
    char symbol[32];
};

static const struct requested requested[] = {
    {"cuMemAlloc", 3020, 0, "cuMemAlloc_v2"},
    {"cuMemFree", 3020, 0, "cuMemFree_v2"},
    {"cuMemGetInfo", 3020, 0, "cuMemGetInfo_v2"},
    {"cuMemFreeAsync", 11020, 0, "cuMemFreeAsync"},
    {"cuMemGetAddressRange", 3020, 0, "cuMemGetAddressRange_v2"},
    {"cuMemGetHandleForAddressRange", 11070, 0, "cuMemGetHandleForAddressRange"},
    {"cuPointerGetAttribute", 4000, 0, "cuPointerGetAttribute"},
    {"cuPointerGetAttributes", 7000, 0, "cuPointerGetAttributes"},
    {"cuPointerSetAttribute", 6000, 0, "cuPointerSetAttribute"},
    {"cuIpcGetMemHandle", 4010, 0, "cuIpcGetMemHandle"},
    {"cuIpcOpenMemHandle", 11000, 0, "cuIpcOpenMemHandle_v2"},
    {"cuIpcOpenMemHandle", 4010, 10999, "cuIpcOpenMemHandle"},
    {"cuIpcCloseMemHandle", 4010, 0, "cuIpcCloseMemHandle"},
    {"cuMemAllocAsync", 11020, 0, "cuMemAllocAsync"},
    {"cuMemAllocFromPoolAsync", 11020, 0, "cuMemAllocFromPoolAsync"},
    {"cuMemAllocManaged", 6000, 0, "cuMemAllocManaged"},
    {"cuMemCreate", 10020, 0, "cuMemCreate"},
    {"cuArrayCreate", 3020, 0, "cuArrayCreate_v2"},
    {"cuArray3DCreate", 3020, 0, "cuArray3DCreate_v2"},
    {"cuMipmappedArrayCreate", 5000, 0, "cuMipmappedArrayCreate"},
    {"cuMemAllocPitch", 3020, 0, "cuMemAllocPitch_v2"},
    {"cuMemHostAlloc", 2020, 0, "cuMemHostAlloc"},
    {"cuMemAllocHost", 3020, 0, "cuMemAllocHost_v2"},
    {"cuMemAlloc", 2000, 3019, "cuMemAlloc"},
    {"cuCtxDestroy", 4000, 0, "cuCtxDestroy_v2"},
    {"cuCtxDestroy", 2000, 3999, "cuCtxDestroy"},
    {"cuDevicePrimaryCtxRelease", 11000, 0, "cuDevicePrimaryCtxRelease_v2"},
    {"cuDevicePrimaryCtxRelease", 7000, 10999, "cuDevicePrimaryCtxRelease"},
    {"cuDevicePrimaryCtxReset", 11000, 0, "cuDevicePrimaryCtxReset_v2"},
    {"cuDevicePrimaryCtxReset", 7000, 10999, "cuDevicePrimaryCtxReset"},
    {"cuCtxFromGreenCtx", 12040, 0, "cuCtxFromGreenCtx"},
    {"cuCtxEnablePeerAccess", 4000, 0, "cuCtxEnablePeerAccess"},
    {"cuStreamBeginCapture", 10010, 0, "cuStreamBeginCapture_v2"},
    {"cuStreamBeginCapture", 10000, 10009, "cuStreamBeginCapture"},
    {"cuStreamBeginCaptureToGraph", 12030, 0, "cuStreamBeginCaptureToGraph"},
    {"cuStreamEndCapture", 10000, 0, "cuStreamEndCapture"},
    {"cuStreamDestroy", 4000, 0, "cuStreamDestroy_v2"},
    {"cuStreamDestroy", 2000, 3999, "cuStreamDestroy"},
    {"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"},
    {"cuGetProcAddress", 11030, 11999, "cuGetProcAddress"},
};

/* For programs with a default stream a thread, a twin of the symbol where there is one. */
static const struct bfc_hook *find_variant(const char *symbol, bfc_cuda_flags flags) {
    char twin[64];
    const struct bfc_hook *hook = NULL;
    if (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) {
        snprintf(twin, sizeof twin, "%s_ptsz", symbol);
        hook = bfc_hook_of_symbol(twin);
    }
    return hook ? hook : bfc_hook_of_symbol(symbol);
}

static const struct bfc_hook *find_by_request(const char *name, int version, bfc_cuda_flags flags) {
    for (size_t i = 0; i < sizeof requested / sizeof requested[0]; i++) {
        const struct requested *row = &requested[i];
        if (strcmp(row->name, name) == 0 && version >= row->first &&
            (row->last == 0 || version <= row->last))
            return find_variant(row->symbol, flags);
    }
    return NULL;
}

void *bfc_replace_entry(void *real, const char *name, int version, bfc_cuda_flags flags) {
    const struct bfc_driver *driver = bfc_driver();
    if (!real || !driver)
        return real;
    for (size_t i = 0; i < HOOKS; i++)
        if (real == bfc_hook_real(driver, &hooks[i]))
            return hooks[i].replacement;
    const struct bfc_hook *hook = find_by_request(name, version, flags);
    if (hook && bfc_hook_real(driver, hook))
        return hook->replacement;
    if (strncmp(name, "cuMemAlloc", strlen("cuMemAlloc")) == 0)
        bfc_count_bypassed(BFC_BYPASS_UNKNOWN_ENTRY, 0);
    return real;
}
