/*
 * Calls past the pool that need device memory.
 *
 * Allocations among them are counted, so that a job in which little is pooled shows why. When the
 * device is full, what the pool only caches is given back to it and the call made once more.
 */
#ifndef BFC_INTERPOSE_BYPASS_H
#define BFC_INTERPOSE_BYPASS_H

#include <cuda.h>

/* NAME, kind (enum bfc_bypass_kind), parameters, arguments, bytes that a success stands for. */
#define BFC_BYPASS_CALLS(X)                                                                        \
    X(cuMemAllocAsync, ASYNC, (CUdeviceptr * out, size_t bytes, CUstream stream),                  \
      (out, bytes, stream), bytes)                                                                 \
    X(cuMemAllocAsync_ptsz, ASYNC, (CUdeviceptr * out, size_t bytes, CUstream stream),             \
      (out, bytes, stream), bytes)                                                                 \
    X(cuMemAllocFromPoolAsync, ASYNC,                                                              \
      (CUdeviceptr * out, size_t bytes, CUmemoryPool pool, CUstream stream),                       \
      (out, bytes, pool, stream), bytes)                                                           \
    X(cuMemAllocFromPoolAsync_ptsz, ASYNC,                                                         \
      (CUdeviceptr * out, size_t bytes, CUmemoryPool pool, CUstream stream),                       \
      (out, bytes, pool, stream), bytes)                                                           \
    X(cuMemAllocManaged, MANAGED, (CUdeviceptr * out, size_t bytes, unsigned flags),               \
      (out, bytes, flags), bytes)                                                                  \
    X(cuMemCreate, VMM,                                                                            \
      (CUmemGenericAllocationHandle * out, size_t bytes, const CUmemAllocationProp *properties,    \
       unsigned long long flags),                                                                  \
      (out, bytes, properties, flags), bytes)                                                      \
    X(cuArrayCreate_v2, ARRAY, (CUarray * out, const CUDA_ARRAY_DESCRIPTOR *array), (out, array),  \
      bfc_bytes_of_array(array->Format, array->NumChannels, array->Width, array->Height, 0))       \
    X(cuArray3DCreate_v2, ARRAY, (CUarray * out, const CUDA_ARRAY3D_DESCRIPTOR *array),            \
      (out, array),                                                                                \
      bfc_bytes_of_array(array->Format, array->NumChannels, array->Width, array->Height,           \
                         array->Depth))                                                            \
    X(cuMipmappedArrayCreate, ARRAY,                                                               \
      (CUmipmappedArray * out, const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned levels),             \
      (out, array, levels),                                                                        \
      bfc_bytes_of_array(array->Format, array->NumChannels, array->Width, array->Height,           \
                         array->Depth))                                                            \
    X(cuMemAllocPitch_v2, PITCH,                                                                   \
      (CUdeviceptr * out, size_t * pitch, size_t width, size_t height, unsigned element),          \
      (out, pitch, width, height, element), *pitch *height)                                        \
    X(cuMemAlloc, V1, (unsigned *out, unsigned bytes), (out, bytes), bytes)                        \
    X(cuMemHostAlloc, HOST, (void **out, size_t bytes, unsigned flags), (out, bytes, flags),       \
      bytes)                                                                                       \
    X(cuMemAllocHost_v2, HOST, (void **out, size_t bytes), (out, bytes), bytes)

/* NAME, parameters, arguments. Calls that need device memory beside their purpose. */
#define BFC_NEEDY_CALLS(X)                                                                         \
    X(cuGraphInstantiate,                                                                          \
      (CUgraphExec * out, CUgraph graph, CUgraphNode * node, char *log, size_t size),              \
      (out, graph, node, log, size))                                                               \
    X(cuGraphInstantiate_v2,                                                                       \
      (CUgraphExec * out, CUgraph graph, CUgraphNode * node, char *log, size_t size),              \
      (out, graph, node, log, size))                                                               \
    X(cuGraphInstantiateWithFlags, (CUgraphExec * out, CUgraph graph, unsigned long long flags),   \
      (out, graph, flags))                                                                         \
    X(cuGraphInstantiateWithParams, (CUgraphExec * out, CUgraph graph, void *how),                 \
      (out, graph, how))                                                                           \
    X(cuGraphInstantiateWithParams_ptsz, (CUgraphExec * out, CUgraph graph, void *how),            \
      (out, graph, how))                                                                           \
    X(cuGraphLaunch, (CUgraphExec graph, CUstream stream), (graph, stream))                        \
    X(cuGraphLaunch_ptsz, (CUgraphExec graph, CUstream stream), (graph, stream))                   \
    X(cuLaunchKernel,                                                                              \
      (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,       \
       unsigned bz, unsigned shared, CUstream stream, void **arguments, void **extra),             \
      (function, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra))                        \
    X(cuLaunchKernel_ptsz,                                                                         \
      (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,       \
       unsigned bz, unsigned shared, CUstream stream, void **arguments, void **extra),             \
      (function, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra))                        \
    X(cuLaunchKernelEx, (const void *how, CUfunction function, void **arguments, void **extra),    \
      (how, function, arguments, extra))                                                           \
    X(cuLaunchKernelEx_ptsz,                                                                       \
      (const void *how, CUfunction function, void **arguments, void **extra),                      \
      (how, function, arguments, extra))                                                           \
    X(cuLaunchCooperativeKernel,                                                                   \
      (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,       \
       unsigned bz, unsigned shared, CUstream stream, void **arguments),                           \
      (function, gx, gy, gz, bx, by, bz, shared, stream, arguments))                               \
    X(cuLaunchCooperativeKernel_ptsz,                                                              \
      (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,       \
       unsigned bz, unsigned shared, CUstream stream, void **arguments),                           \
      (function, gx, gy, gz, bx, by, bz, shared, stream, arguments))                               \
    X(cuModuleLoad, (CUmodule * out, const char *file), (out, file))                               \
    X(cuModuleLoadData, (CUmodule * out, const void *image), (out, image))                         \
    X(cuModuleLoadDataEx,                                                                          \
      (CUmodule * out, const void *image, unsigned count, CUjit_option *options, void **values),   \
      (out, image, count, options, values))                                                        \
    X(cuModuleLoadFatBinary, (CUmodule * out, const void *image), (out, image))

/* The header's macros turn these old or plain names into newer ones. */
#undef cuGraphInstantiate
#undef cuGraphInstantiateWithParams
#undef cuGraphLaunch
#undef cuLaunchCooperativeKernel
#undef cuLaunchKernel
#undef cuLaunchKernelEx
#undef cuMemAlloc
#undef cuMemAllocAsync
#undef cuMemAllocFromPoolAsync

/* Of an array's first level; an extent of 0 counts as 1. */
size_t bfc_bytes_of_array(CUarray_format format, unsigned channels, size_t width, size_t height,
                          size_t depth);

#endif
