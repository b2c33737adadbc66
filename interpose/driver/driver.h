/*
 * The real driver: its functions, found in the libcuda.so.1 that the program itself has loaded.
 *
 * Nothing here loads the driver. Calls through these pointers reach the driver, not the library's
 * hooks. The functions' types are written out and not taken from cuda.h, whose macros turn the
 * names of old variants into those of new ones.
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
#include "interpose/driver/hooked_calls.h"
#include "interpose/driver/submission_calls.h"

/* Driver calls without a hook, which the library makes itself. Each row: NAME, parameters. */
#define BFC_USED_CALLS(X)                                                                          \
    X(cuCtxGetCurrent, (CUcontext *))                                                              \
    X(cuCtxGetDevice, (CUdevice *))                                                                \
    X(cuCtxGetApiVersion, (CUcontext, unsigned *))                                                 \
    X(cuCtxGetFlags, (unsigned *))                                                                 \
    X(cuCtxGetId, (CUcontext, unsigned long long *))                                               \
    X(cuCtxRecordEvent, (CUcontext, CUevent))                                                      \
    X(cuCtxWaitEvent, (CUcontext, CUevent))                                                        \
    X(cuDeviceGetCount, (int *))                                                                   \
    X(cuDeviceGetAttribute, (int *, CUdevice_attribute, CUdevice))                                 \
    X(cuDeviceGetName, (char *, int, CUdevice))                                                    \
    X(cuDeviceGetPCIBusId, (char *, int, CUdevice))                                                \
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
    X(cuStreamGetFlags, (CUstream, unsigned *))                                                    \
    X(cuStreamGetId, (CUstream, unsigned long long *))                                             \
    X(cuStreamGetId_ptsz, (CUstream, unsigned long long *))                                        \
    X(cuStreamIsCapturing, (CUstream, CUstreamCaptureStatus *))                                    \
    X(cuStreamIsCapturing_ptsz, (CUstream, CUstreamCaptureStatus *))                               \
    X(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *))

#undef cuEventRecord
#undef cuStreamGetCtx
#undef cuStreamGetFlags
#undef cuStreamGetId
#undef cuStreamIsCapturing

struct bfc_driver {
#define FIELD(name, parameters, ...) CUresult(*name) parameters;
    BFC_HOOKED_CALLS(FIELD)
#undef FIELD
#define FIELD(name, words, ...) CUresult(*name) BFC_WORDS_##words;
    BFC_SUBMISSION_CALLS(FIELD)
    BFC_AWAKE_CALLS(FIELD)
#undef FIELD
#define FIELD(name, parameters) CUresult(*name) parameters;
    BFC_USED_CALLS(FIELD)
#undef FIELD
    bool can_pool; /* the driver has every call that pooling needs */
    /* the driver has the calls of virtual memory management (CUDA 10.2) that pages need */
    bool can_page;
    /* can_page, and the driver has the calls that share pages with other processes */
    bool can_share_pages;
    bool can_fence; /* the driver can record and await all work of a context (CUDA 12.5) */
};

/* bfc_driver_found: the driver's functions; NULL: not found yet. bfc_driver_find searches for the
 * driver. Callers use bfc_driver, which searches only if the driver was not found yet. */
extern const struct bfc_driver *bfc_driver_found HIDDEN;
const struct bfc_driver *bfc_driver_find(void);

/* Only interpose/entry/binding.c, which finds the driver, calls the following three functions.
 * bfc_driver_set_finder sets the function that bfc_driver_find calls. bfc_driver_read looks up the
 * functions in the loaded library; if several threads do so, all get the first one's result.
 * bfc_driver_publish makes that result known to all threads. With a false `can_pool` it also clears
 * the driver's own `can_pool`, so that nothing is pooled. */
void bfc_driver_set_finder(const struct bfc_driver *(*find)(void));
const struct bfc_driver *bfc_driver_read(const struct link_map *library);
void bfc_driver_publish(const struct bfc_driver *driver, bool can_pool);

/* Returns the driver's functions, or NULL while the program has not loaded libcuda.so.1. A function
 * that the driver lacks is a NULL pointer. Thread-safe; lock-free once the driver is found. */
static inline const struct bfc_driver *bfc_driver(void) {
    const struct bfc_driver *driver = bfc_load_acquire(&bfc_driver_found);
    return driver ? driver : bfc_driver_find();
}

/* For a hook: declares `driver`, or returns an error if the driver lacks the call or none is
 * loaded. Even before a driver is loaded, a program can get a hook, by dlvsym with this library's
 * version. */
#define BFC_FIND_DRIVER(driver, call)                                                              \
    const struct bfc_driver *driver = bfc_driver();                                                \
    if (!driver || !driver->call)                                                                  \
    return driver ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_NOT_INITIALIZED

/* Declares `result`, and makes a call up to 8 times, until it succeeds. For calls whose failure
 * would leave the program or the library in a wrong state that no later call puts right. */
#define BFC_TRY_HARD(result, call)                                                                 \
    CUresult result = CUDA_ERROR_UNKNOWN;                                                          \
    for (int tries_ = 0; tries_ < 8 && result != CUDA_SUCCESS; tries_++)                           \
    result = call

/* Whether this is an error after which every call in the context fails. */
bool bfc_driver_is_fatal(CUresult result);

#endif
