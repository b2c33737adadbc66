/*
 * The calls that are made again when the device was full: the hook has the pools give back memory
 * that they only cache, and repeats the call as long as that frees any
 * (interpose/entry/pass_through_hooks.c). Calls whose hook has logic of its own are not here; such
 * a hook retries its call itself where needed.
 *
 * For each call here, calls.inc has a word that says why it may need memory
 * (interpose/driver/memory_needs.h); static assertions compare the two files. A row's place is the
 * device whose memory the call takes (interpose/reuse/give_back.h).
 */
#ifndef BFC_INTERPOSE_CALLS_RETRIED_WHEN_FULL_H
#define BFC_INTERPOSE_CALLS_RETRIED_WHEN_FULL_H

#include <cuda.h>
#include <stdint.h>

/* Allocations that bypass the pool: NAME, kind (enum bfc_bypass_kind), place, parameters,
 * arguments, bytes that a success allocates. */
#define BFC_BYPASS_CALLS(X)                                                                        \
    X(cuMemAllocAsync, ASYNC, BFC_IN(stream, false),                                               \
      (CUdeviceptr * out, size_t bytes, CUstream stream), (out, bytes, stream), bytes)             \
    X(cuMemAllocAsync_ptsz, ASYNC, BFC_IN(stream, true),                                           \
      (CUdeviceptr * out, size_t bytes, CUstream stream), (out, bytes, stream), bytes)             \
    X(cuMemAllocFromPoolAsync, ASYNC, BFC_IN(stream, false),                                       \
      (CUdeviceptr * out, size_t bytes, CUmemoryPool pool, CUstream stream),                       \
      (out, bytes, pool, stream), bytes)                                                           \
    X(cuMemAllocFromPoolAsync_ptsz, ASYNC, BFC_IN(stream, true),                                   \
      (CUdeviceptr * out, size_t bytes, CUmemoryPool pool, CUstream stream),                       \
      (out, bytes, pool, stream), bytes)                                                           \
    X(cuMemAllocManaged, MANAGED, BFC_HERE, (CUdeviceptr * out, size_t bytes, unsigned flags),     \
      (out, bytes, flags), bytes)                                                                  \
    X(cuMemCreate, VMM, bfc_place_of(properties ? &properties->location : NULL),                   \
      (CUmemGenericAllocationHandle * out, size_t bytes, const CUmemAllocationProp *properties,    \
       unsigned long long flags),                                                                  \
      (out, bytes, properties, flags), bytes)                                                      \
    X(cuArrayCreate_v2, ARRAY, BFC_HERE, (CUarray * out, const CUDA_ARRAY_DESCRIPTOR *array),      \
      (out, array),                                                                                \
      bfc_bytes_of_array(array->Format, array->NumChannels, array->Width, array->Height, 0))       \
    X(cuArray3DCreate_v2, ARRAY, BFC_HERE, (CUarray * out, const CUDA_ARRAY3D_DESCRIPTOR *array),  \
      (out, array),                                                                                \
      bfc_bytes_of_array(array->Format, array->NumChannels, array->Width, array->Height,           \
                         array->Depth))                                                            \
    X(cuMipmappedArrayCreate, ARRAY, BFC_HERE,                                                     \
      (CUmipmappedArray * out, const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned levels),             \
      (out, array, levels),                                                                        \
      bfc_bytes_of_array(array->Format, array->NumChannels, array->Width, array->Height,           \
                         array->Depth))                                                            \
    X(cuMemAllocPitch_v2, PITCH, BFC_HERE,                                                         \
      (CUdeviceptr * out, size_t * pitch, size_t width, size_t height, unsigned element),          \
      (out, pitch, width, height, element), *pitch *height)                                        \
    X(cuMemAlloc, V1, BFC_HERE, (unsigned *out, unsigned bytes), (out, bytes), bytes)              \
    X(cuMemHostAlloc, HOST, BFC_HERE, (void **out, size_t bytes, unsigned flags),                  \
      (out, bytes, flags), bytes)                                                                  \
    X(cuMemAllocHost_v2, HOST, BFC_HERE, (void **out, size_t bytes), (out, bytes), bytes)

/* Calls that need device memory incidentally: NAME, place, parameters, arguments. */
#define BFC_INCIDENTAL_CALLS(X)                                                                    \
    X(cuStreamCreate, BFC_HERE, (CUstream * out, unsigned flags), (out, flags))                    \
    X(cuStreamCreateWithPriority, BFC_HERE, (CUstream * out, unsigned flags, int priority),        \
      (out, flags, priority))                                                                      \
    X(cuGreenCtxStreamCreate, BFC_HERE,                                                            \
      (CUstream * out, CUgreenCtx green, unsigned flags, int priority),                            \
      (out, green, flags, priority))                                                               \
    X(cuEventCreate, BFC_HERE, (CUevent * out, unsigned flags), (out, flags))                      \
    X(cuIpcGetEventHandle, BFC_HERE, (CUipcEventHandle * out, CUevent event), (out, event))        \
    X(cuIpcOpenEventHandle, BFC_HERE, (CUevent * out, CUipcEventHandle handle), (out, handle))     \
    X(cuImportExternalSemaphore, BFC_HERE,                                                         \
      (CUexternalSemaphore * out, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *what), (out, what))   \
    X(cuModuleLoad, BFC_HERE, (CUmodule * out, const char *file), (out, file))                     \
    X(cuModuleLoadData, BFC_HERE, (CUmodule * out, const void *image), (out, image))               \
    X(cuModuleLoadDataEx, BFC_HERE,                                                                \
      (CUmodule * out, const void *image, unsigned count, CUjit_option *options, void **values),   \
      (out, image, count, options, values))                                                        \
    X(cuModuleLoadFatBinary, BFC_HERE, (CUmodule * out, const void *image), (out, image))          \
    X(cuModuleGetFunction, BFC_HERE, (CUfunction * out, CUmodule module, const char *name),        \
      (out, module, name))                                                                         \
    X(cuModuleGetGlobal_v2, BFC_HERE,                                                              \
      (CUdeviceptr * out, size_t * bytes, CUmodule module, const char *name),                      \
      (out, bytes, module, name))                                                                  \
    X(cuLibraryLoadData, BFC_ANYWHERE,                                                             \
      (CUlibrary * out, const void *image, CUjit_option *jit, void **jit_values,                   \
       unsigned jit_count, CUlibraryOption *options, void **values, unsigned count),               \
      (out, image, jit, jit_values, jit_count, options, values, count))                            \
    X(cuLibraryLoadFromFile, BFC_ANYWHERE,                                                         \
      (CUlibrary * out, const char *file, CUjit_option *jit, void **jit_values,                    \
       unsigned jit_count, CUlibraryOption *options, void **values, unsigned count),               \
      (out, file, jit, jit_values, jit_count, options, values, count))                             \
    X(cuLibraryGetKernel, BFC_HERE, (CUkernel * out, CUlibrary library, const char *name),         \
      (out, library, name))                                                                        \
    X(cuLibraryGetModule, BFC_HERE, (CUmodule * out, CUlibrary library), (out, library))           \
    X(cuLibraryGetGlobal, BFC_HERE,                                                                \
      (CUdeviceptr * out, size_t * bytes, CUlibrary library, const char *name),                    \
      (out, bytes, library, name))                                                                 \
    X(cuLibraryGetManaged, BFC_HERE,                                                               \
      (CUdeviceptr * out, size_t * bytes, CUlibrary library, const char *name),                    \
      (out, bytes, library, name))                                                                 \
    X(cuLibraryGetUnifiedFunction, BFC_HERE, (void **out, CUlibrary library, const char *name),    \
      (out, library, name))                                                                        \
    X(cuKernelGetFunction, BFC_HERE, (CUfunction * out, CUkernel kernel), (out, kernel))           \
    X(cuKernelGetAttribute, BFC_ON(device),                                                        \
      (int *out, CUfunction_attribute attribute, CUkernel kernel, CUdevice device),                \
      (out, attribute, kernel, device))                                                            \
    X(cuKernelSetAttribute, BFC_ON(device),                                                        \
      (CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device),               \
      (attribute, value, kernel, device))                                                          \
    X(cuKernelSetCacheConfig, BFC_ON(device),                                                      \
      (CUkernel kernel, CUfunc_cache choice, CUdevice device), (kernel, choice, device))           \
    X(cuFuncLoad, BFC_HERE, (CUfunction function), (function))                                     \
    X(cuFuncGetAttribute, BFC_HERE,                                                                \
      (int *out, CUfunction_attribute attribute, CUfunction function), (out, attribute, function)) \
    X(cuFuncSetAttribute, BFC_HERE,                                                                \
      (CUfunction function, CUfunction_attribute attribute, int value),                            \
      (function, attribute, value))                                                                \
    X(cuGraphAddKernelNode, BFC_HERE,                                                              \
      (CUgraphNode * out, CUgraph graph, const CUgraphNode *after, size_t count,                   \
       const void *what),                                                                          \
      (out, graph, after, count, what))                                                            \
    X(cuGraphAddKernelNode_v2, BFC_HERE,                                                           \
      (CUgraphNode * out, CUgraph graph, const CUgraphNode *after, size_t count,                   \
       const void *what),                                                                          \
      (out, graph, after, count, what))                                                            \
    X(cuGraphAddMemAllocNode, BFC_HERE,                                                            \
      (CUgraphNode * out, CUgraph graph, const CUgraphNode *after, size_t count, void *what),      \
      (out, graph, after, count, what))                                                            \
    X(cuGraphAddNode, BFC_HERE,                                                                    \
      (CUgraphNode * out, CUgraph graph, const CUgraphNode *after, size_t count, void *what),      \
      (out, graph, after, count, what))                                                            \
    X(cuGraphAddNode_v2, BFC_HERE,                                                                 \
      (CUgraphNode * out, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges,   \
       size_t count, void *what),                                                                  \
      (out, graph, after, edges, count, what))                                                     \
    X(cuGraphAddNode_v3, BFC_HERE,                                                                 \
      (CUgraphNode * out, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges,   \
       size_t count, void *what),                                                                  \
      (out, graph, after, edges, count, what))                                                     \
    X(cuGraphInstantiate, BFC_HERE,                                                                \
      (CUgraphExec * out, CUgraph graph, CUgraphNode * node, char *log, size_t size),              \
      (out, graph, node, log, size))                                                               \
    X(cuGraphInstantiate_v2, BFC_HERE,                                                             \
      (CUgraphExec * out, CUgraph graph, CUgraphNode * node, char *log, size_t size),              \
      (out, graph, node, log, size))                                                               \
    X(cuGraphInstantiateWithFlags, BFC_HERE,                                                       \
      (CUgraphExec * out, CUgraph graph, unsigned long long flags), (out, graph, flags))           \
    X(cuGraphInstantiateWithParams, BFC_HERE, (CUgraphExec * out, CUgraph graph, void *how),       \
      (out, graph, how))                                                                           \
    X(cuGraphInstantiateWithParams_ptsz, BFC_HERE, (CUgraphExec * out, CUgraph graph, void *how),  \
      (out, graph, how))                                                                           \
    X(cuGraphUpload, BFC_IN(stream, false), (CUgraphExec graph, CUstream stream), (graph, stream)) \
    X(cuGraphUpload_ptsz, BFC_IN(stream, true), (CUgraphExec graph, CUstream stream),              \
      (graph, stream))                                                                             \
    X(cuGraphLaunch, BFC_IN(stream, false), (CUgraphExec graph, CUstream stream), (graph, stream)) \
    X(cuGraphLaunch_ptsz, BFC_IN(stream, true), (CUgraphExec graph, CUstream stream),              \
      (graph, stream))                                                                             \
    X(cuLaunch, BFC_HERE, (CUfunction function), (function))                                       \
    X(cuLaunchGrid, BFC_HERE, (CUfunction function, int width, int height),                        \
      (function, width, height))                                                                   \
    X(cuLaunchGridAsync, BFC_IN(stream, false),                                                    \
      (CUfunction function, int width, int height, CUstream stream),                               \
      (function, width, height, stream))                                                           \
    X(cuLaunchKernel, BFC_IN(stream, false),                                                       \
      (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,       \
       unsigned bz, unsigned shared, CUstream stream, void **arguments, void **extra),             \
      (function, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra))                        \
    X(cuLaunchKernel_ptsz, BFC_IN(stream, true),                                                   \
      (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,       \
       unsigned bz, unsigned shared, CUstream stream, void **arguments, void **extra),             \
      (function, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra))                        \
    X(cuLaunchKernelEx, BFC_IN(how ? how->hStream : NULL, false),                                  \
      (const CUlaunchConfig *how, CUfunction function, void **arguments, void **extra),            \
      (how, function, arguments, extra))                                                           \
    X(cuLaunchKernelEx_ptsz, BFC_IN(how ? how->hStream : NULL, true),                              \
      (const CUlaunchConfig *how, CUfunction function, void **arguments, void **extra),            \
      (how, function, arguments, extra))                                                           \
    X(cuLaunchCooperativeKernel, BFC_IN(stream, false),                                            \
      (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,       \
       unsigned bz, unsigned shared, CUstream stream, void **arguments),                           \
      (function, gx, gy, gz, bx, by, bz, shared, stream, arguments))                               \
    X(cuLaunchCooperativeKernel_ptsz, BFC_IN(stream, true),                                        \
      (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,       \
       unsigned bz, unsigned shared, CUstream stream, void **arguments),                           \
      (function, gx, gy, gz, bx, by, bz, shared, stream, arguments))                               \
    X(cuCtxSetLimit, BFC_HERE, (CUlimit limit, size_t value), (limit, value))                      \
    X(cuMemPoolCreate, bfc_place_of(properties ? &properties->location : NULL),                    \
      (CUmemoryPool * out, const CUmemPoolProps *properties), (out, properties))                   \
    X(cuMemPoolImportFromShareableHandle, BFC_ANYWHERE,                                            \
      (CUmemoryPool * out, void *handle, CUmemAllocationHandleType type,                           \
       unsigned long long flags),                                                                  \
      (out, handle, type, flags))                                                                  \
    X(cuMemPoolImportPointer, BFC_ANYWHERE,                                                        \
      (CUdeviceptr * out, CUmemoryPool pool, CUmemPoolPtrExportData * what), (out, pool, what))    \
    X(cuMemPoolSetAccess, BFC_ANYWHERE,                                                            \
      (CUmemoryPool pool, const CUmemAccessDesc *access, size_t count), (pool, access, count))     \
    X(cuMemImportFromShareableHandle, BFC_ANYWHERE,                                                \
      (CUmemGenericAllocationHandle * out, void *handle, CUmemAllocationHandleType type),          \
      (out, handle, type))                                                                         \
    X(cuMemHostRegister, BFC_HERE, (void *memory, size_t bytes, unsigned flags),                   \
      (memory, bytes, flags))                                                                      \
    X(cuMemHostRegister_v2, BFC_HERE, (void *memory, size_t bytes, unsigned flags),                \
      (memory, bytes, flags))                                                                      \
    X(cuImportExternalMemory, BFC_HERE,                                                            \
      (CUexternalMemory * out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *what), (out, what))         \
    X(cuExternalMemoryGetMappedBuffer, BFC_HERE,                                                   \
      (CUdeviceptr * out, CUexternalMemory memory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *what),  \
      (out, memory, what))                                                                         \
    X(cuExternalMemoryGetMappedMipmappedArray, BFC_HERE,                                           \
      (CUmipmappedArray * out, CUexternalMemory memory,                                            \
       const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *what),                                     \
      (out, memory, what))                                                                         \
    X(cuGraphicsMapResources, BFC_IN(stream, false),                                               \
      (unsigned count, CUgraphicsResource *resources, CUstream stream),                            \
      (count, resources, stream))                                                                  \
    X(cuGraphicsMapResources_ptsz, BFC_IN(stream, true),                                           \
      (unsigned count, CUgraphicsResource *resources, CUstream stream),                            \
      (count, resources, stream))                                                                  \
    X(cuMulticastCreate, BFC_ANYWHERE,                                                             \
      (CUmemGenericAllocationHandle * out, const void *properties), (out, properties))             \
    X(cuMulticastAddDevice, BFC_ON(device),                                                        \
      (CUmemGenericAllocationHandle object, CUdevice device), (object, device))                    \
    X(cuMulticastBindMem, BFC_ANYWHERE,                                                            \
      (CUmemGenericAllocationHandle object, size_t at, CUmemGenericAllocationHandle memory,        \
       size_t offset, size_t bytes, unsigned long long flags),                                     \
      (object, at, memory, offset, bytes, flags))                                                  \
    X(cuMulticastBindMem_v2, BFC_ON(device),                                                       \
      (CUmemGenericAllocationHandle object, CUdevice device, size_t at,                            \
       CUmemGenericAllocationHandle memory, size_t offset, size_t bytes,                           \
       unsigned long long flags),                                                                  \
      (object, device, at, memory, offset, bytes, flags))                                          \
    X(cuLogicalEndpointIdReserve, BFC_ANYWHERE, (unsigned *first, unsigned count), (first, count)) \
    X(cuLogicalEndpointCreate, BFC_ANYWHERE, (unsigned endpoint, const void *properties),          \
      (endpoint, properties))                                                                      \
    X(cuLogicalEndpointAddDevice, BFC_ON(device), (unsigned endpoint, CUdevice device),            \
      (endpoint, device))                                                                          \
    X(cuLogicalEndpointBindMem, BFC_ON(device),                                                    \
      (unsigned endpoint, CUdevice device, uint64_t at, CUmemGenericAllocationHandle memory,       \
       uint64_t offset, uint64_t bytes, unsigned long long flags),                                 \
      (endpoint, device, at, memory, offset, bytes, flags))                                        \
    X(cuLogicalEndpointImport, BFC_ANYWHERE, (unsigned endpoint, const void *handle, int type),    \
      (endpoint, handle, type))                                                                    \
    X(cuTexObjectCreate, BFC_HERE,                                                                 \
      (CUtexObject * out, const CUDA_RESOURCE_DESC *what, const CUDA_TEXTURE_DESC *how,            \
       const CUDA_RESOURCE_VIEW_DESC *view),                                                       \
      (out, what, how, view))                                                                      \
    X(cuSurfObjectCreate, BFC_HERE, (CUsurfObject * out, const CUDA_RESOURCE_DESC *what),          \
      (out, what))

/* The header's macros turn these old or plain names into newer ones. */
#undef cuGraphAddKernelNode
#undef cuGraphAddNode
#undef cuGraphInstantiate
#undef cuGraphInstantiateWithParams
#undef cuGraphLaunch
#undef cuGraphUpload
#undef cuGraphicsMapResources
#undef cuLaunchCooperativeKernel
#undef cuLaunchKernel
#undef cuLaunchKernelEx
#undef cuMemAlloc
#undef cuMemAllocAsync
#undef cuMemAllocFromPoolAsync
#undef cuMemHostRegister

#endif
