/* The hooks: exported wrappers without logic, and the tables that lead programs to them. */
#include "interpose/entry/hooks.h"

#include <stdio.h>
#include <string.h>

#include "interpose/api/context_end.h"
#include "interpose/api/memory.h"
#include "interpose/config/routes.h"
#include "interpose/context/capture.h"
#include "interpose/context/contexts.h"
#include "interpose/context/green.h"
#include "interpose/driver/current.h"
#include "interpose/entry/define_hook.h"
#include "interpose/entry/unknown.h"
#include "interpose/pointers/export_handle.h"
#include "interpose/pointers/pointer_attributes.h"
#include "interpose/reuse/allocate.h"
#include "interpose/reuse/free_fence.h"
#include "interpose/reuse/free_while_capturing.h"
#include "interpose/reuse/give_back.h"
#include "interpose/reuse/sharing.h"
#include "interpose/stats/published_segment.h"

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

BFC_HOOK(cuMemFreeHost, (void *memory)) {
    BFC_FIND_DRIVER(driver, cuMemFreeHost);
    return bfc_free_host(driver, memory);
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

BFC_HOOK(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle * handle, void *address)) {
    BFC_FIND_DRIVER(driver, cuMemRetainAllocationHandle);
    CUdeviceptr pointer = bfc_mappable((CUdeviceptr)(uintptr_t)address, 0);
    return driver->cuMemRetainAllocationHandle(handle, (void *)(uintptr_t)pointer);
}

BFC_HOOK(cuMemMap, (CUdeviceptr pointer, size_t bytes, size_t offset,
                    CUmemGenericAllocationHandle memory, bfc_cuda_flags flags)) {
    BFC_FIND_DRIVER(driver, cuMemMap);
    pointer = bfc_mappable(pointer, bytes);
    BFC_RETRIED_WHEN_FULL(result, BFC_ANYWHERE,
                          driver->cuMemMap(pointer, bytes, offset, memory, flags));
    return result;
}

BFC_HOOK(cuMemSetAccess,
         (CUdeviceptr pointer, size_t bytes, const CUmemAccessDesc *access, size_t count)) {
    BFC_FIND_DRIVER(driver, cuMemSetAccess);
    pointer = bfc_mappable(pointer, bytes);
    BFC_RETRIED_WHEN_FULL(result, BFC_ANYWHERE,
                          driver->cuMemSetAccess(pointer, bytes, access, count));
    return result;
}

BFC_HOOK(cuMemGetAccess,
         (bfc_cuda_flags * flags, const CUmemLocation *location, CUdeviceptr pointer)) {
    BFC_FIND_DRIVER(driver, cuMemGetAccess);
    return driver->cuMemGetAccess(flags, location, bfc_mappable(pointer, 0));
}

BFC_HOOK(cuMemUnmap, (CUdeviceptr pointer, size_t bytes)) {
    BFC_FIND_DRIVER(driver, cuMemUnmap);
    return driver->cuMemUnmap(bfc_mappable(pointer, bytes), bytes);
}

BFC_HOOK(cuMemAddressFree, (CUdeviceptr pointer, size_t bytes)) {
    BFC_FIND_DRIVER(driver, cuMemAddressFree);
    return driver->cuMemAddressFree(bfc_mappable(pointer, bytes), bytes);
}

BFC_HOOK(cuMulticastBindAddr, (CUmemGenericAllocationHandle object, size_t at, CUdeviceptr pointer,
                               size_t bytes, bfc_cuda_flags flags)) {
    BFC_FIND_DRIVER(driver, cuMulticastBindAddr);
    pointer = bfc_mappable(pointer, bytes);
    BFC_RETRIED_WHEN_FULL(result, BFC_ANYWHERE,
                          driver->cuMulticastBindAddr(object, at, pointer, bytes, flags));
    return result;
}

BFC_HOOK(cuMulticastBindAddr_v2, (CUmemGenericAllocationHandle object, CUdevice device, size_t at,
                                  CUdeviceptr pointer, size_t bytes, bfc_cuda_flags flags)) {
    BFC_FIND_DRIVER(driver, cuMulticastBindAddr_v2);
    pointer = bfc_mappable(pointer, bytes);
    BFC_RETRIED_WHEN_FULL(
        result, BFC_ON(device),
        driver->cuMulticastBindAddr_v2(object, device, at, pointer, bytes, flags));
    return result;
}

BFC_HOOK(cuLogicalEndpointBindAddr, (unsigned endpoint, CUdevice device, uint64_t at, void *memory,
                                     uint64_t bytes, bfc_cuda_flags flags)) {
    BFC_FIND_DRIVER(driver, cuLogicalEndpointBindAddr);
    memory = (void *)bfc_mappable((CUdeviceptr)memory, bytes);
    BFC_RETRIED_WHEN_FULL(
        result, BFC_ON(device),
        driver->cuLogicalEndpointBindAddr(endpoint, device, at, memory, bytes, flags));
    return result;
}

BFC_HOOK(cuIpcGetMemHandle, (CUipcMemHandle * handle, CUdeviceptr pointer)) {
    BFC_FIND_DRIVER(driver, cuIpcGetMemHandle);
    return bfc_export_handle(driver, handle, pointer);
}

BFC_HOOK(cuIpcOpenMemHandle, (CUdeviceptr * pointer, CUipcMemHandle handle, unsigned flags)) {
    BFC_FIND_DRIVER(driver, cuIpcOpenMemHandle);
    BFC_RETRIED_WHEN_FULL(
        result, BFC_HERE,
        bfc_open_handle(driver, pointer, handle, flags, driver->cuIpcOpenMemHandle));
    return result;
}

BFC_HOOK(cuIpcOpenMemHandle_v2, (CUdeviceptr * pointer, CUipcMemHandle handle, unsigned flags)) {
    BFC_FIND_DRIVER(driver, cuIpcOpenMemHandle_v2);
    BFC_RETRIED_WHEN_FULL(
        result, BFC_HERE,
        bfc_open_handle(driver, pointer, handle, flags, driver->cuIpcOpenMemHandle_v2));
    return result;
}

BFC_HOOK(cuIpcCloseMemHandle, (CUdeviceptr pointer)) {
    BFC_FIND_DRIVER(driver, cuIpcCloseMemHandle);
    return bfc_close_handle(driver, pointer);
}

/* Creates a context, and registers it before the program can use it. */
#define CREATE_CONTEXT(name, arguments)                                                            \
    BFC_FIND_DRIVER(driver, name);                                                                 \
    BFC_RETRIED_WHEN_FULL(result, BFC_ON(device), driver->name arguments);                         \
    if (result == CUDA_SUCCESS)                                                                    \
        bfc_context_created(driver, *context);                                                     \
    return result

BFC_HOOK(cuCtxCreate, (CUcontext * context, unsigned flags, CUdevice device)) {
    CREATE_CONTEXT(cuCtxCreate, (context, flags, device));
}

BFC_HOOK(cuCtxCreate_v2, (CUcontext * context, unsigned flags, CUdevice device)) {
    CREATE_CONTEXT(cuCtxCreate_v2, (context, flags, device));
}

BFC_HOOK(cuCtxCreate_v3,
         (CUcontext * context, void *affinity, int count, unsigned flags, CUdevice device)) {
    CREATE_CONTEXT(cuCtxCreate_v3, (context, affinity, count, flags, device));
}

BFC_HOOK(cuCtxCreate_v4, (CUcontext * context, void *how, unsigned flags, CUdevice device)) {
    CREATE_CONTEXT(cuCtxCreate_v4, (context, how, flags, device));
}

BFC_HOOK(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device)) {
    BFC_FIND_DRIVER(driver, cuDevicePrimaryCtxRetain);
    BFC_RETRIED_WHEN_FULL(result, BFC_ON(device),
                          driver->cuDevicePrimaryCtxRetain(context, device));
    if (result == CUDA_SUCCESS) {
        bfc_reuse_context_made(driver, *context);
        bfc_contexts_add_primary(*context, device);
        bfc_contexts_retained(device);
    }
    return result;
}

/* A green context is a part of its device's primary context, which is registered in its place. */
BFC_HOOK(cuGreenCtxCreate,
         (CUgreenCtx * green, CUdevResourceDesc resources, CUdevice device, unsigned flags)) {
    BFC_FIND_DRIVER(driver, cuGreenCtxCreate);
    BFC_RETRIED_WHEN_FULL(result, BFC_ON(device),
                          driver->cuGreenCtxCreate(green, resources, device, flags));
    CUcontext primary = result == CUDA_SUCCESS ? bfc_primary_context(driver, device) : NULL;
    if (primary)
        bfc_reuse_context_made(driver, primary);
    return result;
}

/* Registers a context that becomes current, since it may have been created unseen by any hook. */
#define ENTER_CONTEXT(name)                                                                        \
    BFC_FIND_DRIVER(driver, name);                                                                 \
    CUresult result = driver->name(context);                                                       \
    if (result == CUDA_SUCCESS && context && !bfc_contexts_has(driver, context))                   \
        bfc_reuse_context_made(driver, bfc_green_owner(driver, context));                          \
    return result

BFC_HOOK(cuCtxPushCurrent, (CUcontext context)) {
    ENTER_CONTEXT(cuCtxPushCurrent);
}

BFC_HOOK(cuCtxPushCurrent_v2, (CUcontext context)) {
    ENTER_CONTEXT(cuCtxPushCurrent_v2);
}

BFC_HOOK(cuCtxSetCurrent, (CUcontext context)) {
    ENTER_CONTEXT(cuCtxSetCurrent);
}

BFC_HOOK(cuCtxDestroy, (CUcontext context)) {
    BFC_FIND_DRIVER(driver, cuCtxDestroy);
    return bfc_context_destroy(driver, context, driver->cuCtxDestroy);
}

BFC_HOOK(cuCtxDestroy_v2, (CUcontext context)) {
    BFC_FIND_DRIVER(driver, cuCtxDestroy_v2);
    return bfc_context_destroy(driver, context, driver->cuCtxDestroy_v2);
}

BFC_HOOK(cuCtxDetach, (CUcontext context)) {
    BFC_FIND_DRIVER(driver, cuCtxDetach);
    return bfc_context_destroy(driver, context, driver->cuCtxDetach);
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
    BFC_RETRIED_WHEN_FULL(result, BFC_HERE, bfc_share_enable_peer(driver, owner, flags));
    return result;
}

BFC_HOOK(cuCtxDisablePeerAccess, (CUcontext owner)) {
    BFC_FIND_DRIVER(driver, cuCtxDisablePeerAccess);
    return bfc_share_disable_peer(driver, owner);
}

/* Begins a capture. Meanwhile the gate of capture.h keeps our own calls out. */
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

/* This call is new in CUDA 13.3. Its last two parameters are a callback and the callback's data. */
BFC_HOOK(cuStreamBeginRecaptureToGraph,
         (CUstream stream, CUstreamCaptureMode mode, CUgraph graph, void *callback, void *data)) {
    BEGIN_CAPTURE(cuStreamBeginRecaptureToGraph, false, mode,
                  (stream, mode, graph, callback, data));
}

BFC_HOOK(cuStreamBeginRecaptureToGraph_ptsz,
         (CUstream stream, CUstreamCaptureMode mode, CUgraph graph, void *callback, void *data)) {
    BEGIN_CAPTURE(cuStreamBeginRecaptureToGraph_ptsz, true, mode,
                  (stream, mode, graph, callback, data));
}

/* This call is new in CUDA 13.1. It has no mode, and which calls it bars is not documented. */
BFC_HOOK(cuStreamBeginCaptureToCig, (CUstream stream, void *how)) {
    BEGIN_CAPTURE(cuStreamBeginCaptureToCig, false, BFC_CAPTURE_MODE_UNKNOWN, (stream, how));
}

BFC_HOOK(cuStreamBeginCaptureToCig_ptsz, (CUstream stream, void *how)) {
    BEGIN_CAPTURE(cuStreamBeginCaptureToCig_ptsz, true, BFC_CAPTURE_MODE_UNKNOWN, (stream, how));
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

BFC_HOOK(cuStreamEndCaptureToCig, (CUstream stream)) {
    BFC_FIND_DRIVER(driver, cuStreamEndCaptureToCig);
    return end_capture(driver, stream, false, driver->cuStreamEndCaptureToCig(stream));
}

BFC_HOOK(cuStreamEndCaptureToCig_ptsz, (CUstream stream)) {
    BFC_FIND_DRIVER(driver, cuStreamEndCaptureToCig_ptsz);
    return end_capture(driver, stream, true, driver->cuStreamEndCaptureToCig_ptsz(stream));
}

/*
 * Whether a stream that the driver refused to destroy still captures. The mode of its capture is no
 * longer known, so the caller assumes the mode that bars the most.
 */
static bool still_captures(const struct bfc_driver *driver, CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return driver->cuStreamIsCapturing &&
           driver->cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static CUresult destroy_stream(const struct bfc_driver *driver, CUstream stream,
                               CUresult (*real)(CUstream)) {
    bool last = bfc_capture_ended(stream, false);
    CUresult result = real(stream);
    if (result != CUDA_SUCCESS && still_captures(driver, stream)) {
        bfc_capture_begin();
        bfc_capture_began(stream, false, CU_STREAM_CAPTURE_MODE_GLOBAL, CUDA_SUCCESS);
    } else if (last) {
        bfc_reuse_after_captures(driver);
    }
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
        *entry = bfc_hook_for_entry(*entry, name, version, flags);
    return result;
}

BFC_HOOK(cuGetProcAddress_v2,
         (const char *name, void **entry, int version, bfc_cuda_flags flags, int *status)) {
    BFC_FIND_DRIVER(driver, cuGetProcAddress_v2);
    CUresult result = driver->cuGetProcAddress_v2(name, entry, version, flags, status);
    if (result == CUDA_SUCCESS && name && entry)
        *entry = bfc_hook_for_entry(*entry, name, version, flags);
    return result;
}

#define DECLARE(name, kind, place, parameters, arguments, bytes)                                   \
    BFC_HOOK_DECLARED(name, parameters);
BFC_BYPASS_CALLS(DECLARE)
#undef DECLARE
#define DECLARE(name, place, parameters, arguments) BFC_HOOK_DECLARED(name, parameters);
BFC_INCIDENTAL_CALLS(DECLARE)
#undef DECLARE
#define DECLARE(name, parameters, arguments, to, from)                                             \
    BFC_HOOK_DECLARED(name, parameters);                                                           \
    BFC_HOOK_DECLARED(name##_ptds, parameters);
BFC_SYNCHRONOUS_CALLS(DECLARE)
#undef DECLARE

#define DECLARE(name, parameters, arguments) BFC_HOOK_DECLARED(name, parameters);
BFC_FAILURE_CALLS(DECLARE)
#undef DECLARE

static const struct bfc_hook hooks[] = {
#define ROW(name, arguments)                                                                       \
    {#name, __extension__(void *) hook_##name, offsetof(struct bfc_driver, name)},
    BFC_HOOKED_CALLS(ROW)
#undef ROW
#define ROW(name, kind, place, parameters, arguments, bytes)                                       \
    {#name, __extension__(void *) hook_##name, offsetof(struct bfc_driver, name)},
        BFC_BYPASS_CALLS(ROW)
#undef ROW
#define ROW(name, place, parameters, arguments)                                                    \
    {#name, __extension__(void *) hook_##name, offsetof(struct bfc_driver, name)},
            BFC_INCIDENTAL_CALLS(ROW)
#undef ROW
#define ROW(name, parameters, arguments, to, from)                                                 \
    {#name, __extension__(void *) hook_##name, offsetof(struct bfc_driver, name)},                 \
        {#name "_ptds", __extension__(void *) hook_##name##_ptds,                                  \
         offsetof(struct bfc_driver, name##_ptds)},
                BFC_SYNCHRONOUS_CALLS(ROW)
#undef ROW
#define ROW(name, parameters, arguments)                                                           \
    {#name, __extension__(void *) hook_##name, offsetof(struct bfc_driver, name)},
                    BFC_FAILURE_CALLS(ROW)
#undef ROW
};
enum { HOOKS = sizeof hooks / sizeof hooks[0] };

void *bfc_hook_real(const struct bfc_driver *driver, const struct bfc_hook *hook) {
    return *(void *const *)((const char *)driver + hook->real);
}

const struct bfc_hook *bfc_hook_of_symbol(const char *name) {
    if (name[0] != 'c' || name[1] != 'u') /* excludes nearly all names that a process looks up */
        return NULL;
    for (size_t i = 0; i < HOOKS; i++)
        if (strcmp(hooks[i].symbol, name) == 0)
            return &hooks[i];
    return NULL;
}

/*
 * Every call of the driver with the version from which cuGetProcAddress knows it. A hook is found
 * by this table where cuGetProcAddress returns another pointer than dlsym.
 */
static const struct {
    char symbol[56];
    int version; /* the first in which the name without its ending means this variant */
} calls[] = {
#define BFC_CALL(symbol, version, need) {#symbol, version},
#include "interpose/driver/calls.inc"
#undef BFC_CALL
};

/* Whether `symbol` is `name`, alone or with an ending such as _v2. */
static bool is_variant(const char *symbol, const char *name) {
    size_t length = strlen(name);
    if (strncmp(symbol, name, length) != 0)
        return false;
    const char *ending = symbol + length;
    return !*ending ||
           (strncmp(ending, "_v", 2) == 0 && !ending[2 + strspn(ending + 2, "0123456789")]);
}

/* For programs with per-thread default streams: the hook of a _ptsz or _ptds twin, if any. */
static const struct bfc_hook *find_variant(const char *symbol, bfc_cuda_flags flags) {
    char twin[64];
    const struct bfc_hook *hook = NULL;
    if (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) {
        snprintf(twin, sizeof twin, "%.56s_ptsz", symbol);
        hook = bfc_hook_of_symbol(twin);
        if (!hook) {
            snprintf(twin, sizeof twin, "%.56s_ptds", symbol);
            hook = bfc_hook_of_symbol(twin);
        }
    }
    return hook ? hook : bfc_hook_of_symbol(symbol);
}

static const struct bfc_hook *find_by_request(const char *name, int version, bfc_cuda_flags flags) {
    const char *symbol = NULL;
    int newest = 0;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (calls[i].version <= version && calls[i].version > newest &&
            is_variant(calls[i].symbol, name)) {
            symbol = calls[i].symbol;
            newest = calls[i].version;
        }
    return symbol ? find_variant(symbol, flags) : NULL;
}

static void *give_hook(const struct bfc_hook *hook) {
    bfc_routes_note(hook->symbol, BFC_ROUTE_PROC_ADDRESS);
    return hook->replacement;
}

void *bfc_hook_for_entry(void *real, const char *name, int version, bfc_cuda_flags flags) {
    const struct bfc_driver *driver = bfc_driver();
    if (!real || !driver)
        return real;
    for (size_t i = 0; i < HOOKS; i++)
        if (real == bfc_hook_real(driver, &hooks[i]))
            return give_hook(&hooks[i]);
    const struct bfc_hook *hook = find_by_request(name, version, flags);
    if (hook && bfc_hook_real(driver, hook))
        return give_hook(hook);
    if (strncmp(name, "cuMemAlloc", strlen("cuMemAlloc")) == 0)
        bfc_segment_count_bypassed(BFC_BYPASS_UNKNOWN_ENTRY, 0);
    return bfc_unknown_entry(name, real);
}
