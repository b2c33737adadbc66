/*
 * The driver calls that have a hook (interpose/entry/hooks.c), in tables of rows that say what the
 * hook does.
 *
 * Each row begins with the call's NAME and parameters. The other columns are code that hooks.c puts
 * into the hook; there `driver` is the real driver and `real` its function of this name. A column
 * `place` tells from which device the call takes memory (interpose/reuse/give_back.h).
 */
#ifndef BFC_INTERPOSE_HOOKED_CALLS_H
#define BFC_INTERPOSE_HOOKED_CALLS_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef unsigned long long bfc_cuda_flags;

/* Two rows with equal columns: for a call, and for its variant whose name ends in `ending`. */
#define BFC_BOTH(X, ending, name, ...) X(name, __VA_ARGS__) X(name##ending, __VA_ARGS__)

/* Each makes two rows: one for a call, one for its variant whose stream 0 is the calling thread's
 * own default stream. BFC_TWINS adds a last column: whether the row is for that variant.
 * BFC_IN_STREAM adds a column `place` instead: the device of the stream. */
#define BFC_TWINS(X, ending, name, ...)                                                            \
    X(name, __VA_ARGS__, false) X(name##ending, __VA_ARGS__, true)
#define BFC_IN_STREAM(X, name, stream, ...)                                                        \
    X(name, __VA_ARGS__, BFC_IN(stream, false)) X(name##_ptsz, __VA_ARGS__, BFC_IN(stream, true))

/* The calls that the pool serves. Each row: NAME, parameters, the function that serves the call.
 * That function looks for the driver itself, only when it needs it. */
#define BFC_POOLED_CALLS(X)                                                                        \
    X(cuMemAlloc_v2, (CUdeviceptr * pointer, size_t bytes), bfc_allocate(pointer, bytes))          \
    X(cuMemFree_v2, (CUdeviceptr pointer), bfc_free(pointer))

/* Calls that a function of the library answers, which may call the driver. Each row: NAME,
 * parameters, answer. */
#define BFC_ANSWERED_CALLS(X)                                                                      \
    X(cuMemFreeAsync, (CUdeviceptr pointer, CUstream stream),                                      \
      bfc_free_async(driver, pointer, stream, false))                                              \
    X(cuMemFreeAsync_ptsz, (CUdeviceptr pointer, CUstream stream),                                 \
      bfc_free_async(driver, pointer, stream, true))                                               \
    X(cuMemFreeHost, (void *memory), bfc_free_host(driver, memory))                                \
    X(cuMemGetInfo_v2, (size_t * free_bytes, size_t * total_bytes),                                \
      bfc_memory_info(driver, free_bytes, total_bytes))                                            \
    X(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle * handle, void *address),         \
      real(handle, (void *)bfc_mappable((CUdeviceptr)address, 0)))                                 \
    X(cuMemGetAccess,                                                                              \
      (bfc_cuda_flags * flags, const CUmemLocation *location, CUdeviceptr pointer),                \
      real(flags, location, bfc_mappable(pointer, 0)))                                             \
    X(cuMemUnmap, (CUdeviceptr pointer, size_t bytes), real(bfc_mappable(pointer, bytes), bytes))  \
    X(cuMemAddressFree, (CUdeviceptr pointer, size_t bytes),                                       \
      real(bfc_mappable(pointer, bytes), bytes))                                                   \
    X(cuIpcCloseMemHandle, (CUdeviceptr pointer), bfc_close_handle(driver, pointer))               \
    X(cuCtxDisablePeerAccess, (CUcontext owner), bfc_share_disable_peer(driver, owner))            \
    X(cuCtxPopCurrent, (CUcontext * context), leave_context(real(context)))                        \
    X(cuCtxPopCurrent_v2, (CUcontext * context), leave_context(real(context)))                     \
    BFC_BOTH(X, _v2, cuCtxPushCurrent, (CUcontext context),                                        \
             enter_context(driver, context, real(context)))                                        \
    X(cuCtxSetCurrent, (CUcontext context), enter_context(driver, context, real(context)))         \
    X(cuCtxFromGreenCtx, (CUcontext * context, CUgreenCtx green),                                  \
      note_green_context(driver, context, real(context, green)))                                   \
    BFC_BOTH(X, _v2, cuCtxDestroy, (CUcontext context),                                            \
             bfc_context_destroy(driver, context, real))                                           \
    X(cuCtxDetach, (CUcontext context), bfc_context_destroy(driver, context, real))                \
    BFC_BOTH(X, _v2, cuDevicePrimaryCtxRelease, (CUdevice device),                                 \
             bfc_primary_end(driver, device, false, real))                                         \
    BFC_BOTH(X, _v2, cuDevicePrimaryCtxReset, (CUdevice device),                                   \
             bfc_primary_end(driver, device, true, real))                                          \
    BFC_BOTH(X, _v2, cuStreamDestroy, (CUstream stream), destroy_stream(driver, stream, real))     \
    X(cuStreamEndCapture, (CUstream stream, CUgraph * graph),                                      \
      end_capture(driver, stream, false, real(stream, graph)))                                     \
    X(cuStreamEndCapture_ptsz, (CUstream stream, CUgraph * graph),                                 \
      end_capture(driver, stream, true, real(stream, graph)))                                      \
    X(cuStreamEndCaptureToCig, (CUstream stream),                                                  \
      end_capture(driver, stream, false, real(stream)))                                            \
    X(cuStreamEndCaptureToCig_ptsz, (CUstream stream),                                             \
      end_capture(driver, stream, true, real(stream)))                                             \
    X(cuGetExportTable, (const void **table, const CUuuid *id),                                    \
      note_export_table(table, id, real(table, id)))                                               \
    X(cuGetProcAddress, (const char *name, void **entry, int version, bfc_cuda_flags flags),       \
      replace_entry(name, entry, version, flags, real(name, entry, version, flags)))               \
    X(cuGetProcAddress_v2,                                                                         \
      (const char *name, void **entry, int version, bfc_cuda_flags flags, int *status),            \
      replace_entry(name, entry, version, flags, real(name, entry, version, flags, status)))

/* Calls that ask the driver about memory. Memory that was moved off the device (BFC_SLEEP_IDLE) is
 * brought back first, so that the driver finds it. Each row: NAME, parameters, answer. */
#define BFC_ASKED_CALLS(X)                                                                         \
    X(cuMemGetAddressRange_v2, (CUdeviceptr * start, size_t * size, CUdeviceptr pointer),          \
      bfc_address_range(driver, start, size, pointer))                                             \
    X(cuMemGetHandleForAddressRange,                                                               \
      (void *handle, CUdeviceptr pointer, size_t size, CUmemRangeHandleType type,                  \
       bfc_cuda_flags flags),                                                                      \
      bfc_export_range(driver, handle, pointer, size, type, flags))                                \
    X(cuPointerGetAttribute, (void *data, CUpointer_attribute attribute, CUdeviceptr pointer),     \
      bfc_pointer_attribute(driver, data, attribute, pointer))                                     \
    X(cuPointerGetAttributes,                                                                      \
      (unsigned count, CUpointer_attribute *attributes, void **data, CUdeviceptr pointer),         \
      bfc_pointer_attributes(driver, count, attributes, data, pointer))                            \
    X(cuPointerSetAttribute,                                                                       \
      (const void *value, CUpointer_attribute attribute, CUdeviceptr pointer),                     \
      bfc_set_pointer_attribute(driver, value, attribute, pointer))                                \
    X(cuIpcGetMemHandle, (CUipcMemHandle * handle, CUdeviceptr pointer),                           \
      bfc_export_handle(driver, handle, pointer))

/* Calls that are made again when the device was full, like those of BFC_BYPASS_CALLS, but whose
 * hook also does something else. Each row: NAME, parameters, how the hook makes the call, what the
 * hook does after a success, place. */
#define BFC_MAKING_CALLS(X)                                                                        \
    BFC_BOTH(X, _v2, cuCtxCreate, (CUcontext * context, unsigned flags, CUdevice device),          \
             real(context, flags, device), bfc_context_created(driver, *context), BFC_ON(device))  \
    X(cuCtxCreate_v3,                                                                              \
      (CUcontext * context, void *affinity, int count, unsigned flags, CUdevice device),           \
      real(context, affinity, count, flags, device), bfc_context_created(driver, *context),        \
      BFC_ON(device))                                                                              \
    X(cuCtxCreate_v4, (CUcontext * context, void *how, unsigned flags, CUdevice device),           \
      real(context, how, flags, device), bfc_context_created(driver, *context), BFC_ON(device))    \
    X(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device), real(context, device),     \
      add_primary(driver, *context, device), BFC_ON(device))                                       \
    X(cuGreenCtxCreate,                                                                            \
      (CUgreenCtx * green, CUdevResourceDesc resources, CUdevice device, unsigned flags),          \
      real(green, resources, device, flags), add_green(driver, device), BFC_ON(device))            \
    BFC_BOTH(X, _v2, cuIpcOpenMemHandle,                                                           \
             (CUdeviceptr * pointer, CUipcMemHandle handle, unsigned flags),                       \
             bfc_open_handle(driver, pointer, handle, flags, real), (void)0, BFC_HERE)             \
    X(cuCtxEnablePeerAccess, (CUcontext owner, unsigned flags),                                    \
      bfc_share_enable_peer(driver, owner, flags), (void)0, BFC_HERE)                              \
    X(cuMemAllocPitch_v2,                                                                          \
      (CUdeviceptr * pointer, size_t * pitch, size_t width, size_t height, unsigned element),      \
      bfc_allocate_pitched(driver, pointer, pitch, width, height, element), (void)0,               \
      BFC_HERE_ASLEEP)

/* Calls that begin a stream capture. Each row: NAME, parameters, arguments, capture mode, whether
 * stream 0 is the thread's own default stream. cuStreamBeginRecaptureToGraph is new in CUDA 13.3.
 * cuStreamBeginCaptureToCig is new in CUDA 13.1 and has no mode; which calls fail during its
 * capture is not documented. */
#define BFC_CAPTURE_CALLS(X)                                                                       \
    BFC_TWINS(X, _ptsz, cuStreamBeginCapture, (CUstream stream), (stream),                         \
              CU_STREAM_CAPTURE_MODE_GLOBAL)                                                       \
    BFC_TWINS(X, _ptsz, cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode),      \
              (stream, mode), mode)                                                                \
    BFC_TWINS(X, _ptsz, cuStreamBeginCaptureToGraph,                                               \
              (CUstream stream, CUgraph graph, const CUgraphNode *after,                           \
               const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode),              \
              (stream, graph, after, edges, count, mode), mode)                                    \
    BFC_TWINS(                                                                                     \
        X, _ptsz, cuStreamBeginRecaptureToGraph,                                                   \
        (CUstream stream, CUstreamCaptureMode mode, CUgraph graph, void *callback, void *data),    \
        (stream, mode, graph, callback, data), mode)                                               \
    BFC_TWINS(X, _ptsz, cuStreamBeginCaptureToCig, (CUstream stream, void *how), (stream, how),    \
              BFC_CAPTURE_MODE_UNKNOWN)

/*
 * Calls that are made again when the device was full: the hook makes the pools give back memory
 * that they hold only as a cache, and repeats the call as long as they give some back. calls.inc
 * says of each why it may need memory (interpose/driver/memory_needs.h); static assertions compare
 * it with this table and the next one.
 *
 * This table is of allocations that the pool does not serve. Each row: NAME, parameters, arguments,
 * kind (enum bfc_bypass_kind), how many bytes a success allocates, place.
 */
#define BFC_BYPASS_CALLS(X)                                                                        \
    BFC_IN_STREAM(X, cuMemAllocAsync, stream, (CUdeviceptr * out, size_t bytes, CUstream stream),  \
                  (out, bytes, stream), ASYNC, bytes)                                              \
    BFC_IN_STREAM(X, cuMemAllocFromPoolAsync, stream,                                              \
                  (CUdeviceptr * out, size_t bytes, CUmemoryPool pool, CUstream stream),           \
                  (out, bytes, pool, stream), ASYNC, bytes)                                        \
    X(cuMemAllocManaged, (CUdeviceptr * out, size_t bytes, unsigned flags), (out, bytes, flags),   \
      MANAGED, bytes, BFC_HERE)                                                                    \
    X(cuMemCreate,                                                                                 \
      (CUmemGenericAllocationHandle * out, size_t bytes, const CUmemAllocationProp *properties,    \
       bfc_cuda_flags flags),                                                                      \
      (out, bytes, properties, flags), VMM, bytes,                                                 \
      bfc_place_of(properties ? &properties->location : NULL))                                     \
    X(cuArrayCreate_v2, (CUarray * out, const CUDA_ARRAY_DESCRIPTOR *array), (out, array), ARRAY,  \
      bfc_bytes_of_array(array->Format, array->NumChannels, array->Width, array->Height, 0),       \
      BFC_HERE)                                                                                    \
    X(cuArray3DCreate_v2, (CUarray * out, const CUDA_ARRAY3D_DESCRIPTOR *array), (out, array),     \
      ARRAY,                                                                                       \
      bfc_bytes_of_array(array->Format, array->NumChannels, array->Width, array->Height,           \
                         array->Depth),                                                            \
      BFC_HERE)                                                                                    \
    X(cuMipmappedArrayCreate,                                                                      \
      (CUmipmappedArray * out, const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned levels),             \
      (out, array, levels), ARRAY,                                                                 \
      bfc_bytes_of_array(array->Format, array->NumChannels, array->Width, array->Height,           \
                         array->Depth),                                                            \
      BFC_HERE)                                                                                    \
    X(cuMemAlloc, (unsigned *out, unsigned bytes), (out, bytes), V1, bytes, BFC_HERE)              \
    X(cuMemHostAlloc, (void **out, size_t bytes, unsigned flags), (out, bytes, flags), HOST,       \
      bytes, BFC_HERE)                                                                             \
    X(cuMemAllocHost_v2, (void **out, size_t bytes), (out, bytes), HOST, bytes, BFC_HERE)

/* Calls that need device memory for something other than an allocation. Each row: NAME, parameters,
 * arguments, place. */
#define BFC_INCIDENTAL_CALLS(X)                                                                    \
    X(cuStreamCreate, (CUstream * out, unsigned flags), (out, flags), BFC_HERE)                    \
    X(cuStreamCreateWithPriority, (CUstream * out, unsigned flags, int priority),                  \
      (out, flags, priority), BFC_HERE)                                                            \
    X(cuGreenCtxStreamCreate, (CUstream * out, CUgreenCtx green, unsigned flags, int priority),    \
      (out, green, flags, priority), BFC_HERE)                                                     \
    X(cuEventCreate, (CUevent * out, unsigned flags), (out, flags), BFC_HERE)                      \
    X(cuIpcGetEventHandle, (CUipcEventHandle * out, CUevent event), (out, event), BFC_HERE)        \
    X(cuIpcOpenEventHandle, (CUevent * out, CUipcEventHandle handle), (out, handle), BFC_HERE)     \
    X(cuImportExternalSemaphore,                                                                   \
      (CUexternalSemaphore * out, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *what), (out, what),   \
      BFC_HERE)                                                                                    \
    X(cuModuleLoad, (CUmodule * out, const char *file), (out, file), BFC_HERE)                     \
    X(cuModuleLoadData, (CUmodule * out, const void *image), (out, image), BFC_HERE)               \
    X(cuModuleLoadDataEx,                                                                          \
      (CUmodule * out, const void *image, unsigned count, CUjit_option *options, void **values),   \
      (out, image, count, options, values), BFC_HERE)                                              \
    X(cuModuleLoadFatBinary, (CUmodule * out, const void *image), (out, image), BFC_HERE)          \
    X(cuModuleGetFunction, (CUfunction * out, CUmodule module, const char *name),                  \
      (out, module, name), BFC_HERE)                                                               \
    X(cuModuleGetGlobal_v2,                                                                        \
      (CUdeviceptr * out, size_t * bytes, CUmodule module, const char *name),                      \
      (out, bytes, module, name), BFC_HERE)                                                        \
    X(cuLibraryLoadData,                                                                           \
      (CUlibrary * out, const void *image, CUjit_option *jit, void **jit_values,                   \
       unsigned jit_count, CUlibraryOption *options, void **values, unsigned count),               \
      (out, image, jit, jit_values, jit_count, options, values, count), BFC_ANYWHERE)              \
    X(cuLibraryLoadFromFile,                                                                       \
      (CUlibrary * out, const char *file, CUjit_option *jit, void **jit_values,                    \
       unsigned jit_count, CUlibraryOption *options, void **values, unsigned count),               \
      (out, file, jit, jit_values, jit_count, options, values, count), BFC_ANYWHERE)               \
    X(cuLibraryGetKernel, (CUkernel * out, CUlibrary library, const char *name),                   \
      (out, library, name), BFC_HERE)                                                              \
    X(cuLibraryGetModule, (CUmodule * out, CUlibrary library), (out, library), BFC_HERE)           \
    X(cuLibraryGetGlobal,                                                                          \
      (CUdeviceptr * out, size_t * bytes, CUlibrary library, const char *name),                    \
      (out, bytes, library, name), BFC_HERE)                                                       \
    X(cuLibraryGetManaged,                                                                         \
      (CUdeviceptr * out, size_t * bytes, CUlibrary library, const char *name),                    \
      (out, bytes, library, name), BFC_HERE)                                                       \
    X(cuLibraryGetUnifiedFunction, (void **out, CUlibrary library, const char *name),              \
      (out, library, name), BFC_HERE)                                                              \
    X(cuKernelGetFunction, (CUfunction * out, CUkernel kernel), (out, kernel), BFC_HERE)           \
    X(cuKernelGetAttribute,                                                                        \
      (int *out, CUfunction_attribute attribute, CUkernel kernel, CUdevice device),                \
      (out, attribute, kernel, device), BFC_ON(device))                                            \
    X(cuKernelSetAttribute,                                                                        \
      (CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device),               \
      (attribute, value, kernel, device), BFC_ON(device))                                          \
    X(cuKernelSetCacheConfig, (CUkernel kernel, CUfunc_cache choice, CUdevice device),             \
      (kernel, choice, device), BFC_ON(device))                                                    \
    X(cuFuncLoad, (CUfunction function), (function), BFC_HERE)                                     \
    X(cuFuncGetAttribute, (int *out, CUfunction_attribute attribute, CUfunction function),         \
      (out, attribute, function), BFC_HERE)                                                        \
    X(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute attribute, int value),        \
      (function, attribute, value), BFC_HERE)                                                      \
    BFC_BOTH(X, _v2, cuGraphAddKernelNode,                                                         \
             (CUgraphNode * out, CUgraph graph, const CUgraphNode *after, size_t count,            \
              const void *what),                                                                   \
             (out, graph, after, count, what), BFC_HERE)                                           \
    X(cuGraphAddMemAllocNode,                                                                      \
      (CUgraphNode * out, CUgraph graph, const CUgraphNode *after, size_t count, void *what),      \
      (out, graph, after, count, what), BFC_HERE)                                                  \
    X(cuGraphAddNode,                                                                              \
      (CUgraphNode * out, CUgraph graph, const CUgraphNode *after, size_t count, void *what),      \
      (out, graph, after, count, what), BFC_HERE)                                                  \
    X(cuGraphAddNode_v2,                                                                           \
      (CUgraphNode * out, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges,   \
       size_t count, void *what),                                                                  \
      (out, graph, after, edges, count, what), BFC_HERE)                                           \
    X(cuGraphAddNode_v3,                                                                           \
      (CUgraphNode * out, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges,   \
       size_t count, void *what),                                                                  \
      (out, graph, after, edges, count, what), BFC_HERE)                                           \
    BFC_BOTH(X, _v2, cuGraphInstantiate,                                                           \
             (CUgraphExec * out, CUgraph graph, CUgraphNode * node, char *log, size_t size),       \
             (out, graph, node, log, size), BFC_HERE)                                              \
    X(cuGraphInstantiateWithFlags, (CUgraphExec * out, CUgraph graph, bfc_cuda_flags flags),       \
      (out, graph, flags), BFC_HERE)                                                               \
    BFC_BOTH(X, _ptsz, cuGraphInstantiateWithParams,                                               \
             (CUgraphExec * out, CUgraph graph, void *how), (out, graph, how), BFC_HERE)           \
    BFC_IN_STREAM(X, cuGraphUpload, stream, (CUgraphExec graph, CUstream stream), (graph, stream)) \
    BFC_IN_STREAM(X, cuGraphLaunch, stream, (CUgraphExec graph, CUstream stream), (graph, stream)) \
    X(cuLaunch, (CUfunction function), (function), BFC_IN(NULL, false))                            \
    X(cuLaunchGrid, (CUfunction function, int width, int height), (function, width, height),       \
      BFC_IN(NULL, false))                                                                         \
    X(cuLaunchGridAsync, (CUfunction function, int width, int height, CUstream stream),            \
      (function, width, height, stream), BFC_IN(stream, false))                                    \
    BFC_IN_STREAM(X, cuLaunchKernel, stream,                                                       \
                  (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,        \
                   unsigned by, unsigned bz, unsigned shared, CUstream stream, void **arguments,   \
                   void **extra),                                                                  \
                  (function, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra))            \
    X(cuLaunchKernelEx,                                                                            \
      (const CUlaunchConfig *how, CUfunction function, void **arguments, void **extra),            \
      (how, function, arguments, extra), place_of_launch(how, false))                              \
    X(cuLaunchKernelEx_ptsz,                                                                       \
      (const CUlaunchConfig *how, CUfunction function, void **arguments, void **extra),            \
      (how, function, arguments, extra), place_of_launch(how, true))                               \
    BFC_IN_STREAM(X, cuLaunchCooperativeKernel, stream,                                            \
                  (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,        \
                   unsigned by, unsigned bz, unsigned shared, CUstream stream, void **arguments),  \
                  (function, gx, gy, gz, bx, by, bz, shared, stream, arguments))                   \
    X(cuCtxSetLimit, (CUlimit limit, size_t value), (limit, value), BFC_HERE)                      \
    X(cuMemPoolCreate, (CUmemoryPool * out, const CUmemPoolProps *properties), (out, properties),  \
      bfc_place_of(properties ? &properties->location : NULL))                                     \
    X(cuMemPoolImportFromShareableHandle,                                                          \
      (CUmemoryPool * out, void *handle, CUmemAllocationHandleType type, bfc_cuda_flags flags),    \
      (out, handle, type, flags), BFC_ANYWHERE)                                                    \
    X(cuMemPoolImportPointer,                                                                      \
      (CUdeviceptr * out, CUmemoryPool pool, CUmemPoolPtrExportData * what), (out, pool, what),    \
      BFC_ANYWHERE)                                                                                \
    X(cuMemPoolSetAccess, (CUmemoryPool pool, const CUmemAccessDesc *access, size_t count),        \
      (pool, access, count), BFC_ANYWHERE)                                                         \
    X(cuMemImportFromShareableHandle,                                                              \
      (CUmemGenericAllocationHandle * out, void *handle, CUmemAllocationHandleType type),          \
      (out, handle, type), BFC_ANYWHERE)                                                           \
    BFC_BOTH(X, _v2, cuMemHostRegister, (void *memory, size_t bytes, unsigned flags),              \
             (memory, bytes, flags), BFC_HERE)                                                     \
    X(cuImportExternalMemory,                                                                      \
      (CUexternalMemory * out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *what), (out, what),         \
      BFC_HERE)                                                                                    \
    X(cuExternalMemoryGetMappedBuffer,                                                             \
      (CUdeviceptr * out, CUexternalMemory memory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *what),  \
      (out, memory, what), BFC_HERE)                                                               \
    X(cuExternalMemoryGetMappedMipmappedArray,                                                     \
      (CUmipmappedArray * out, CUexternalMemory memory,                                            \
       const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *what),                                     \
      (out, memory, what), BFC_HERE)                                                               \
    BFC_IN_STREAM(X, cuGraphicsMapResources, stream,                                               \
                  (unsigned count, CUgraphicsResource *resources, CUstream stream),                \
                  (count, resources, stream))                                                      \
    X(cuMulticastCreate, (CUmemGenericAllocationHandle * out, const void *properties),             \
      (out, properties), BFC_ANYWHERE)                                                             \
    X(cuMulticastAddDevice, (CUmemGenericAllocationHandle object, CUdevice device),                \
      (object, device), BFC_ON(device))                                                            \
    X(cuMulticastBindMem,                                                                          \
      (CUmemGenericAllocationHandle object, size_t at, CUmemGenericAllocationHandle memory,        \
       size_t offset, size_t bytes, bfc_cuda_flags flags),                                         \
      (object, at, memory, offset, bytes, flags), BFC_ANYWHERE)                                    \
    X(cuMulticastBindMem_v2,                                                                       \
      (CUmemGenericAllocationHandle object, CUdevice device, size_t at,                            \
       CUmemGenericAllocationHandle memory, size_t offset, size_t bytes, bfc_cuda_flags flags),    \
      (object, device, at, memory, offset, bytes, flags), BFC_ON(device))                          \
    X(cuLogicalEndpointIdReserve, (unsigned *first, unsigned count), (first, count), BFC_ANYWHERE) \
    X(cuLogicalEndpointCreate, (unsigned endpoint, const void *properties),                        \
      (endpoint, properties), BFC_ANYWHERE)                                                        \
    X(cuLogicalEndpointAddDevice, (unsigned endpoint, CUdevice device), (endpoint, device),        \
      BFC_ON(device))                                                                              \
    X(cuLogicalEndpointBindMem,                                                                    \
      (unsigned endpoint, CUdevice device, uint64_t at, CUmemGenericAllocationHandle memory,       \
       uint64_t offset, uint64_t bytes, bfc_cuda_flags flags),                                     \
      (endpoint, device, at, memory, offset, bytes, flags), BFC_ON(device))                        \
    X(cuLogicalEndpointImport, (unsigned endpoint, const void *handle, int type),                  \
      (endpoint, handle, type), BFC_ANYWHERE)                                                      \
    X(cuTexObjectCreate,                                                                           \
      (CUtexObject * out, const CUDA_RESOURCE_DESC *what, const CUDA_TEXTURE_DESC *how,            \
       const CUDA_RESOURCE_VIEW_DESC *view),                                                       \
      (out, what, how, view), BFC_HERE)                                                            \
    X(cuSurfObjectCreate, (CUsurfObject * out, const CUDA_RESOURCE_DESC *what), (out, what),       \
      BFC_HERE)                                                                                    \
    X(cuMemMap,                                                                                    \
      (CUdeviceptr pointer, size_t bytes, size_t offset, CUmemGenericAllocationHandle memory,      \
       bfc_cuda_flags flags),                                                                      \
      (bfc_mappable(pointer, bytes), bytes, offset, memory, flags), BFC_ANYWHERE)                  \
    X(cuMemSetAccess,                                                                              \
      (CUdeviceptr pointer, size_t bytes, const CUmemAccessDesc *access, size_t count),            \
      (bfc_mappable(pointer, bytes), bytes, access, count), BFC_ANYWHERE)                          \
    X(cuMulticastBindAddr,                                                                         \
      (CUmemGenericAllocationHandle object, size_t at, CUdeviceptr pointer, size_t bytes,          \
       bfc_cuda_flags flags),                                                                      \
      (object, at, bfc_mappable(pointer, bytes), bytes, flags), BFC_ANYWHERE)                      \
    X(cuMulticastBindAddr_v2,                                                                      \
      (CUmemGenericAllocationHandle object, CUdevice device, size_t at, CUdeviceptr pointer,       \
       size_t bytes, bfc_cuda_flags flags),                                                        \
      (object, device, at, bfc_mappable(pointer, bytes), bytes, flags), BFC_ON(device))            \
    X(cuLogicalEndpointBindAddr,                                                                   \
      (unsigned endpoint, CUdevice device, uint64_t at, void *memory, uint64_t bytes,              \
       bfc_cuda_flags flags),                                                                      \
      (endpoint, device, at, (void *)bfc_mappable((CUdeviceptr)memory, bytes), bytes, flags),      \
      BFC_ON(device))

/* The device address of one side, src or dst, of a copy that is described by a CUDA_MEMCPY struct;
 * 0: that side is not device memory. */
#define BFC_SIDE(copy, side)                                                                       \
    ((copy)->side##MemoryType == CU_MEMORYTYPE_DEVICE ||                                           \
             (copy)->side##MemoryType == CU_MEMORYTYPE_UNIFIED                                     \
         ? (copy)->side##Device                                                                    \
         : 0)

/* Synchronous copies and memsets. A copy to host memory always waits for the device. Other calls
 * may return before their work is done, unless SYNC_MEMOPS is set for their memory (cuda.h, "API
 * synchronization behavior"). Each row: NAME, parameters, arguments, the device address that the
 * call writes to, the one that it reads from (0: none), whether stream 0 is the thread's own
 * default stream. */
#define BFC_SYNCHRONOUS_CALLS(X)                                                                   \
    BFC_TWINS(X, _ptds, cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t bytes),                \
              (to, from, bytes), to, from)                                                         \
    BFC_TWINS(X, _ptds, cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t bytes),         \
              (to, from, bytes), to, 0)                                                            \
    BFC_TWINS(X, _ptds, cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes),         \
              (to, from, bytes), to, from)                                                         \
    BFC_TWINS(X, _ptds, cuMemcpyDtoA_v2, (CUarray to, size_t at, CUdeviceptr from, size_t bytes),  \
              (to, at, from, bytes), 0, from)                                                      \
    BFC_TWINS(X, _ptds, cuMemcpyAtoD_v2, (CUdeviceptr to, CUarray from, size_t at, size_t bytes),  \
              (to, from, at, bytes), to, 0)                                                        \
    BFC_TWINS(X, _ptds, cuMemcpyPeer,                                                              \
              (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,     \
               size_t bytes),                                                                      \
              (to, to_context, from, from_context, bytes), to, from)                               \
    BFC_TWINS(X, _ptds, cuMemcpy2D_v2, (const CUDA_MEMCPY2D *copy), (copy), BFC_SIDE(copy, dst),   \
              BFC_SIDE(copy, src))                                                                 \
    BFC_TWINS(X, _ptds, cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D *copy), (copy),               \
              BFC_SIDE(copy, dst), BFC_SIDE(copy, src))                                            \
    BFC_TWINS(X, _ptds, cuMemcpy3D_v2, (const CUDA_MEMCPY3D *copy), (copy), BFC_SIDE(copy, dst),   \
              BFC_SIDE(copy, src))                                                                 \
    BFC_TWINS(X, _ptds, cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER *copy), (copy),                  \
              BFC_SIDE(copy, dst), BFC_SIDE(copy, src))                                            \
    BFC_TWINS(X, _ptds, cuMemsetD8_v2, (CUdeviceptr to, unsigned char value, size_t count),        \
              (to, value, count), to, 0)                                                           \
    BFC_TWINS(X, _ptds, cuMemsetD16_v2, (CUdeviceptr to, unsigned short value, size_t count),      \
              (to, value, count), to, 0)                                                           \
    BFC_TWINS(X, _ptds, cuMemsetD32_v2, (CUdeviceptr to, unsigned value, size_t count),            \
              (to, value, count), to, 0)                                                           \
    BFC_TWINS(X, _ptds, cuMemsetD2D8_v2,                                                           \
              (CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height),    \
              (to, pitch, value, width, height), to, 0)                                            \
    BFC_TWINS(X, _ptds, cuMemsetD2D16_v2,                                                          \
              (CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height),   \
              (to, pitch, value, width, height), to, 0)                                            \
    BFC_TWINS(X, _ptds, cuMemsetD2D32_v2,                                                          \
              (CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height),         \
              (to, pitch, value, width, height), to, 0)

/* Calls that have a hook only so that the pools learn of a failed context when the program does. If
 * such a call returns an error after which every call in its context fails, the next allocation
 * returns that error too, as the driver's own would (free_fence.h, bfc_reuse_note_failure). Hooks
 * of most other tables do that as well. If only calls without a hook have returned such an error,
 * the next free notices it. Each row: NAME, parameters, arguments. */
#define BFC_FAILURE_CALLS(X)                                                                       \
    X(cuEventSynchronize, (CUevent event), (event))                                                \
    X(cuEventQuery, (CUevent event), (event))                                                      \
    BFC_BOTH(X, _ptsz, cuStreamQuery, (CUstream stream), (stream))

/* Calls that submit work to a stream. Other calls that do so are in a table above, with a column
 * for the stream, or in submission_calls.h. Each row: NAME, parameters, arguments, stream (NULL:
 * the default stream), whether stream 0 is the thread's own default stream. */
#define BFC_STREAM_CALLS(X)                                                                        \
    BFC_TWINS(X, _ptds, cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes),               \
              (to, from, bytes), NULL)                                                             \
    BFC_TWINS(X, _ptsz, cuMemcpyDtoHAsync_v2,                                                      \
              (void *to, CUdeviceptr from, size_t bytes, CUstream stream),                         \
              (to, from, bytes, stream), stream)                                                   \
    BFC_TWINS(X, _ptsz, cuMemcpyHtoDAsync_v2,                                                      \
              (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),                   \
              (to, from, bytes, stream), stream)                                                   \
    BFC_TWINS(X, _ptsz, cuMemcpyDtoDAsync_v2,                                                      \
              (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),                   \
              (to, from, bytes, stream), stream)                                                   \
    BFC_TWINS(X, _ptsz, cuMemcpyAsync,                                                             \
              (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),                   \
              (to, from, bytes, stream), stream)                                                   \
    BFC_TWINS(X, _ptsz, cuMemsetD8Async,                                                           \
              (CUdeviceptr to, unsigned char value, size_t count, CUstream stream),                \
              (to, value, count, stream), stream)                                                  \
    BFC_TWINS(X, _ptsz, cuMemsetD32Async,                                                          \
              (CUdeviceptr to, unsigned value, size_t count, CUstream stream),                     \
              (to, value, count, stream), stream)

/* Calls in which the host waits for all work of a context. Each row: NAME, parameters, arguments,
 * the context (NULL: the current one). */
#define BFC_WAIT_CALLS(X)                                                                          \
    X(cuCtxSynchronize, (void), (), NULL)                                                          \
    X(cuCtxSynchronize_v2, (CUcontext context), (context), context)

/* Calls in which the host waits for all work of a stream. Each row: NAME, parameters, arguments,
 * whether stream 0 is the thread's own default stream. */
#define BFC_STREAM_WAIT_CALLS(X)                                                                   \
    BFC_TWINS(X, _ptsz, cuStreamSynchronize, (CUstream stream), (stream))

/* All tables above: calls whose hooks every program is given, unlike those of submission_calls.h.
 * Each row: NAME, parameters, and at least one more column. */
#define BFC_HOOKED_CALLS(X)                                                                        \
    BFC_POOLED_CALLS(X)                                                                            \
    BFC_ANSWERED_CALLS(X)                                                                          \
    BFC_ASKED_CALLS(X)                                                                             \
    BFC_MAKING_CALLS(X)                                                                            \
    BFC_CAPTURE_CALLS(X)                                                                           \
    BFC_BYPASS_CALLS(X)                                                                            \
    BFC_INCIDENTAL_CALLS(X)                                                                        \
    BFC_SYNCHRONOUS_CALLS(X)                                                                       \
    BFC_FAILURE_CALLS(X) BFC_STREAM_CALLS(X) BFC_WAIT_CALLS(X) BFC_STREAM_WAIT_CALLS(X)

/* cuda.h defines these names as macros for the names of newer variants or, in programs that are
 * compiled for per-thread default streams, for the names of per-thread variants. */
#undef cuCtxCreate
#undef cuCtxDestroy
#undef cuCtxPopCurrent
#undef cuCtxPushCurrent
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuGetProcAddress
#undef cuGraphAddKernelNode
#undef cuGraphAddNode
#undef cuGraphInstantiate
#undef cuGraphInstantiateWithParams
#undef cuGraphLaunch
#undef cuGraphUpload
#undef cuGraphicsMapResources
#undef cuIpcOpenMemHandle
#undef cuLaunchCooperativeKernel
#undef cuLaunchKernel
#undef cuLaunchKernelEx
#undef cuMemAlloc
#undef cuMemAllocAsync
#undef cuMemAllocFromPoolAsync
#undef cuMemFreeAsync
#undef cuMemHostRegister
#undef cuMemcpy
#undef cuMemcpy3DPeer
#undef cuMemcpyAsync
#undef cuMemcpyPeer
#undef cuMemsetD32Async
#undef cuMemsetD8Async
#undef cuStreamBeginCapture
#undef cuStreamBeginCaptureToCig
#undef cuStreamBeginCaptureToGraph
#undef cuStreamBeginRecaptureToGraph
#undef cuStreamDestroy
#undef cuStreamEndCapture
#undef cuStreamEndCaptureToCig
#undef cuStreamQuery
#undef cuStreamSynchronize

#endif
