/*
 * The real driver: its functions, found in the libcuda.so.1 that the program itself has loaded.
 *
 * Nothing here loads the driver. Calls go straight to it, past our own hooks. Signatures are spelt
 * out, since the header's macros would turn old variants into new ones.
 */
#ifndef BFC_INTERPOSE_DRIVER_H
#define BFC_INTERPOSE_DRIVER_H

#include <cuda.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/driver/calls_retried_when_full.h"
#include "interpose/driver/failure_calls.h"
#include "interpose/driver/synchronous_calls.h"

typedef unsigned long long bfc_cuda_flags;

/* The calls that have a hook in hooks.c. A row: NAME, arguments. */
#define BFC_HOOKED_CALLS(X)                                                                        \
    X(cuMemAlloc_v2, (CUdeviceptr *, size_t))                                                      \
    X(cuMemFree_v2, (CUdeviceptr))                                                                 \
    X(cuMemFreeAsync, (CUdeviceptr, CUstream))                                                     \
    X(cuMemFreeAsync_ptsz, (CUdeviceptr, CUstream))                                                \
    X(cuMemFreeHost, (void *))                                                                     \
    X(cuMemGetInfo_v2, (size_t *, size_t *))                                                       \
    X(cuMemGetAddressRange_v2, (CUdeviceptr *, size_t *, CUdeviceptr))                             \
    X(cuMemGetHandleForAddressRange,                                                               \
      (void *, CUdeviceptr, size_t, CUmemRangeHandleType, bfc_cuda_flags))                         \
    X(cuPointerGetAttribute, (void *, CUpointer_attribute, CUdeviceptr))                           \
    X(cuPointerGetAttributes, (unsigned, CUpointer_attribute *, void **, CUdeviceptr))             \
    X(cuPointerSetAttribute, (const void *, CUpointer_attribute, CUdeviceptr))                     \
    X(cuIpcGetMemHandle, (CUipcMemHandle *, CUdeviceptr))                                          \
    X(cuIpcOpenMemHandle, (CUdeviceptr *, CUipcMemHandle, unsigned))                               \
    X(cuIpcOpenMemHandle_v2, (CUdeviceptr *, CUipcMemHandle, unsigned))                            \
    X(cuIpcCloseMemHandle, (CUdeviceptr))                                                          \
    X(cuCtxCreate, (CUcontext *, unsigned, CUdevice))                                              \
    X(cuCtxCreate_v2, (CUcontext *, unsigned, CUdevice))                                           \
    X(cuCtxCreate_v3, (CUcontext *, void *, int, unsigned, CUdevice))                              \
    X(cuCtxCreate_v4, (CUcontext *, void *, unsigned, CUdevice))                                   \
    X(cuCtxPushCurrent, (CUcontext))                                                               \
    X(cuCtxPushCurrent_v2, (CUcontext))                                                            \
    X(cuCtxSetCurrent, (CUcontext))                                                                \
    X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                           \
    X(cuGreenCtxCreate, (CUgreenCtx *, CUdevResourceDesc, CUdevice, unsigned))                     \
    X(cuCtxDestroy, (CUcontext))                                                                   \
    X(cuCtxDestroy_v2, (CUcontext))                                                                \
    X(cuCtxDetach, (CUcontext))                                                                    \
    X(cuDevicePrimaryCtxRelease, (CUdevice))                                                       \
    X(cuDevicePrimaryCtxRelease_v2, (CUdevice))                                                    \
    X(cuDevicePrimaryCtxReset, (CUdevice))                                                         \
    X(cuDevicePrimaryCtxReset_v2, (CUdevice))                                                      \
    X(cuCtxFromGreenCtx, (CUcontext *, CUgreenCtx))                                                \
    X(cuCtxEnablePeerAccess, (CUcontext, unsigned))                                                \
    X(cuCtxDisablePeerAccess, (CUcontext))                                                         \
    X(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle *, void *))                       \
    X(cuMemMap, (CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, bfc_cuda_flags))       \
    X(cuMemSetAccess, (CUdeviceptr, size_t, const CUmemAccessDesc *, size_t))                      \
    X(cuMemGetAccess, (bfc_cuda_flags *, const CUmemLocation *, CUdeviceptr))                      \
    X(cuMemUnmap, (CUdeviceptr, size_t))                                                           \
    X(cuMemAddressFree, (CUdeviceptr, size_t))                                                     \
    X(cuMulticastBindAddr,                                                                         \
      (CUmemGenericAllocationHandle, size_t, CUdeviceptr, size_t, bfc_cuda_flags))                 \
    X(cuMulticastBindAddr_v2,                                                                      \
      (CUmemGenericAllocationHandle, CUdevice, size_t, CUdeviceptr, size_t, bfc_cuda_flags))       \
    X(cuLogicalEndpointBindAddr, (unsigned, CUdevice, uint64_t, void *, uint64_t, bfc_cuda_flags)) \
    X(cuStreamBeginCapture, (CUstream))                                                            \
    X(cuStreamBeginCapture_ptsz, (CUstream))                                                       \
    X(cuStreamBeginCapture_v2, (CUstream, CUstreamCaptureMode))                                    \
    X(cuStreamBeginCapture_v2_ptsz, (CUstream, CUstreamCaptureMode))                               \
    X(cuStreamBeginCaptureToGraph, (CUstream, CUgraph, const CUgraphNode *,                        \
                                    const CUgraphEdgeData *, size_t, CUstreamCaptureMode))         \
    X(cuStreamBeginCaptureToGraph_ptsz, (CUstream, CUgraph, const CUgraphNode *,                   \
                                         const CUgraphEdgeData *, size_t, CUstreamCaptureMode))    \
    X(cuStreamBeginRecaptureToGraph, (CUstream, CUstreamCaptureMode, CUgraph, void *, void *))     \
    X(cuStreamBeginRecaptureToGraph_ptsz,                                                          \
      (CUstream, CUstreamCaptureMode, CUgraph, void *, void *))                                    \
    X(cuStreamBeginCaptureToCig, (CUstream, void *))                                               \
    X(cuStreamBeginCaptureToCig_ptsz, (CUstream, void *))                                          \
    X(cuStreamEndCapture, (CUstream, CUgraph *))                                                   \
    X(cuStreamEndCapture_ptsz, (CUstream, CUgraph *))                                              \
    X(cuStreamEndCaptureToCig, (CUstream))                                                         \
    X(cuStreamEndCaptureToCig_ptsz, (CUstream))                                                    \
    X(cuStreamDestroy, (CUstream))                                                                 \
    X(cuStreamDestroy_v2, (CUstream))                                                              \
    X(cuGetProcAddress, (const char *, void **, int, bfc_cuda_flags))                              \
    X(cuGetProcAddress_v2, (const char *, void **, int, bfc_cuda_flags, int *))

#define BFC_USED_CALLS(X)                                                                          \
    X(cuCtxGetCurrent, (CUcontext *))                                                              \
    X(cuCtxPopCurrent_v2, (CUcontext *))                                                           \
    X(cuCtxGetDevice, (CUdevice *))                                                                \
    X(cuCtxGetApiVersion, (CUcontext, unsigned *))                                                 \
    X(cuCtxGetFlags, (unsigned *))                                                                 \
    X(cuCtxGetId, (CUcontext, unsigned long long *))                                               \
    X(cuCtxRecordEvent, (CUcontext, CUevent))                                                      \
    X(cuCtxWaitEvent, (CUcontext, CUevent))                                                        \
    X(cuDeviceGetCount, (int *))                                                                   \
    X(cuDeviceGetAttribute, (int *, CUdevice_attribute, CUdevice))                                 \
    X(cuDeviceGetName, (char *, int, CUdevice))                                                    \
    X(cuDeviceGetUuid, (CUuuid *, CUdevice))                                                       \
    X(cuDeviceTotalMem_v2, (size_t *, CUdevice))                                                   \
    X(cuDevicePrimaryCtxGetState, (CUdevice, unsigned *, int *))                                   \
    X(cuEventRecord, (CUevent, CUstream))                                                          \
    X(cuEventRecord_ptsz, (CUevent, CUstream))                                                     \
    X(cuMemAddressReserve, (CUdeviceptr *, size_t, size_t, CUdeviceptr, bfc_cuda_flags))           \
    X(cuMemExportToShareableHandle,                                                                \
      (void *, CUmemGenericAllocationHandle, CUmemAllocationHandleType, bfc_cuda_flags))           \
    X(cuMemGetAllocationGranularity,                                                               \
      (size_t *, const CUmemAllocationProp *, CUmemAllocationGranularity_flags))                   \
    X(cuMemGetAllocationPropertiesFromHandle,                                                      \
      (CUmemAllocationProp *, CUmemGenericAllocationHandle))                                       \
    X(cuMemRelease, (CUmemGenericAllocationHandle))                                                \
    X(cuMemHostGetDevicePointer_v2, (CUdeviceptr *, void *, unsigned))                             \
    X(cuStreamGetCtx, (CUstream, CUcontext *))                                                     \
    X(cuStreamGetCtx_ptsz, (CUstream, CUcontext *))                                                \
    X(cuStreamGetId, (CUstream, unsigned long long *))                                             \
    X(cuStreamGetId_ptsz, (CUstream, unsigned long long *))                                        \
    X(cuStreamIsCapturing, (CUstream, CUstreamCaptureStatus *))                                    \
    X(cuStreamIsCapturing_ptsz, (CUstream, CUstreamCaptureStatus *))                               \
    X(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *))

#undef cuCtxCreate
#undef cuCtxDestroy
#undef cuCtxPushCurrent
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuEventRecord
#undef cuGetProcAddress
#undef cuIpcOpenMemHandle
#undef cuMemFreeAsync
#undef cuStreamBeginCapture
#undef cuStreamBeginCaptureToCig
#undef cuStreamBeginCaptureToGraph
#undef cuStreamBeginRecaptureToGraph
#undef cuStreamDestroy
#undef cuStreamEndCapture
#undef cuStreamEndCaptureToCig
#undef cuStreamGetCtx
#undef cuStreamGetId
#undef cuStreamIsCapturing

struct bfc_driver {
#define FIELD(name, arguments) CUresult(*name) arguments;
    BFC_HOOKED_CALLS(FIELD)
    BFC_USED_CALLS(FIELD)
#undef FIELD
#define FIELD(name, kind, place, parameters, arguments, bytes) CUresult(*name) parameters;
    BFC_BYPASS_CALLS(FIELD)
#undef FIELD
#define FIELD(name, place, parameters, arguments) CUresult(*name) parameters;
    BFC_INCIDENTAL_CALLS(FIELD)
#undef FIELD
#define FIELD(name, parameters, arguments, to, from)                                               \
    CUresult(*name) parameters, (*name##_ptds)parameters;
    BFC_SYNCHRONOUS_CALLS(FIELD)
#undef FIELD
#define FIELD(name, parameters, arguments) CUresult(*name) parameters;
    BFC_FAILURE_CALLS(FIELD)
#undef FIELD
    bool can_pool;        /* the driver has every call that pooling needs */
    bool can_page;        /* the driver has every call of virtual memory management (CUDA 10.2) */
    bool can_share_pages; /* the driver can page, and has the calls that share pages */
    bool can_fence;       /* the driver can record and await all work of a context (CUDA 12.5) */
};

/* The driver's functions once found, and the slow way to find them. */
extern const struct bfc_driver *bfc_driver_found HIDDEN;
const struct bfc_driver *bfc_driver_find(void);

/*
 * Only interpose/entry/binding.c, which finds the driver, calls the following three functions.
 * bfc_driver_set_finder sets the function that bfc_driver_find calls. bfc_driver_read reads the
 * functions of the loaded library; if several threads do so, the first one's result counts.
 * bfc_driver_publish makes the functions known to all threads; if `can_pool` is false, it clears
 * `can_pool` of the driver.
 */
void bfc_driver_set_finder(const struct bfc_driver *(*find)(void));
const struct bfc_driver *bfc_driver_read(const struct link_map *library);
void bfc_driver_publish(const struct bfc_driver *driver, bool can_pool);

/*
 * Returns the driver's functions, or NULL while the program has not loaded libcuda.so.1. The
 * pointer to a function that the driver lacks is NULL. Thread-safe; lock-free once the driver is
 * found.
 */
static inline const struct bfc_driver *bfc_driver(void) {
    const struct bfc_driver *driver = bfc_load_acquire(&bfc_driver_found);
    return driver ? driver : bfc_driver_find();
}

/*
 * For a hook: declares `driver`, and returns an error if there is no driver (a program can get a
 * hook from dlvsym by our own version) or if the driver lacks the call.
 */
#define BFC_FIND_DRIVER(driver, call)                                                              \
    const struct bfc_driver *driver = bfc_driver();                                                \
    if (!driver || !driver->call)                                                                  \
    return driver ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_NOT_INITIALIZED

/* Whether this is an error after which every call in the context fails. */
bool bfc_driver_is_fatal(CUresult result);

#endif
