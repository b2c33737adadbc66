// The stand-in runtime's internal header: the driver's functions as it found them, what a thread
// remembers, and the forms of its exported functions.
//
// It reaches the driver as NVIDIA's does (measured on libcudart 13.0): dlopen of libcuda.so.1,
// dlsym of cuGetProcAddress_v2, an empty look-up, cuGetProcAddress again at 11030 and 12000, and
// all else through what that returned, with no status asked for.
#ifndef SIM_RUNTIME_H
#define SIM_RUNTIME_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#ifdef SIM_RUNTIME_12
#include "sim/runtime/twelve.h"
#endif

// DRIVER(name, version, type): the version that NVIDIA's runtime asks for, and the function whose
// type the answer has. DRIVER_TWIN: asked for in both forms of the default stream.
#define DRIVER_FUNCTIONS(DRIVER, DRIVER_TWIN)                                                      \
    DRIVER(cuInit, 2000, cuInit)                                                                   \
    DRIVER(cuDriverGetVersion, 2020, cuDriverGetVersion)                                           \
    DRIVER(cuDeviceGet, 2000, cuDeviceGet)                                                         \
    DRIVER(cuDeviceGetCount, 2000, cuDeviceGetCount)                                               \
    DRIVER(cuDeviceGetName, 2000, cuDeviceGetName)                                                 \
    DRIVER(cuDeviceTotalMem, 3020, cuDeviceTotalMem_v2)                                            \
    DRIVER(cuDeviceGetAttribute, 2000, cuDeviceGetAttribute)                                       \
    DRIVER(cuDeviceGetUuid, 11040, cuDeviceGetUuid_v2)                                             \
    DRIVER(cuDeviceGetPCIBusId, 4010, cuDeviceGetPCIBusId)                                         \
    DRIVER(cuDeviceGetByPCIBusId, 4010, cuDeviceGetByPCIBusId)                                     \
    DRIVER(cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain)                               \
    DRIVER(cuDevicePrimaryCtxRelease, 7000, cuDevicePrimaryCtxRelease)                             \
    DRIVER(cuDevicePrimaryCtxReset, 7000, cuDevicePrimaryCtxReset)                                 \
    DRIVER(cuDevicePrimaryCtxGetState, 7000, cuDevicePrimaryCtxGetState)                           \
    DRIVER(cuDevicePrimaryCtxSetFlags, 7000, cuDevicePrimaryCtxSetFlags)                           \
    DRIVER(cuCtxGetCurrent, 4000, cuCtxGetCurrent)                                                 \
    DRIVER(cuCtxSetCurrent, 4000, cuCtxSetCurrent)                                                 \
    DRIVER(cuCtxGetDevice, 2000, cuCtxGetDevice)                                                   \
    DRIVER(cuCtxGetFlags, 7000, cuCtxGetFlags)                                                     \
    DRIVER(cuCtxSynchronize, 2000, cuCtxSynchronize)                                               \
    DRIVER(cuCtxGetStreamPriorityRange, 5050, cuCtxGetStreamPriorityRange)                         \
    DRIVER(cuMemAlloc, 3020, cuMemAlloc_v2)                                                        \
    DRIVER(cuMemFree, 3020, cuMemFree_v2)                                                          \
    DRIVER(cuMemGetInfo, 3020, cuMemGetInfo_v2)                                                    \
    DRIVER(cuMemGetAddressRange, 3020, cuMemGetAddressRange_v2)                                    \
    DRIVER(cuMemAllocHost, 3020, cuMemAllocHost_v2)                                                \
    DRIVER(cuMemHostAlloc, 2020, cuMemHostAlloc)                                                   \
    DRIVER(cuMemFreeHost, 2000, cuMemFreeHost)                                                     \
    DRIVER(cuMemHostRegister, 6050, cuMemHostRegister_v2)                                          \
    DRIVER(cuMemHostUnregister, 4000, cuMemHostUnregister)                                         \
    DRIVER(cuMemHostGetDevicePointer, 3020, cuMemHostGetDevicePointer_v2)                          \
    DRIVER(cuMemHostGetFlags, 2030, cuMemHostGetFlags)                                             \
    DRIVER(cuPointerGetAttributes, 7000, cuPointerGetAttributes)                                   \
    DRIVER(cuStreamCreate, 2000, cuStreamCreate)                                                   \
    DRIVER(cuStreamCreateWithPriority, 5050, cuStreamCreateWithPriority)                           \
    DRIVER(cuStreamDestroy, 4000, cuStreamDestroy_v2)                                              \
    DRIVER(cuEventCreate, 2000, cuEventCreate)                                                     \
    DRIVER(cuEventDestroy, 4000, cuEventDestroy_v2)                                                \
    DRIVER(cuEventQuery, 2000, cuEventQuery)                                                       \
    DRIVER(cuEventSynchronize, 2000, cuEventSynchronize)                                           \
    DRIVER(cuEventElapsedTime, 12080, cuEventElapsedTime_v2)                                       \
    DRIVER(cuGetErrorName, 6000, cuGetErrorName)                                                   \
    DRIVER(cuGetErrorString, 6000, cuGetErrorString)                                               \
    DRIVER(cuMemAllocPitch, 3020, cuMemAllocPitch_v2)                                              \
    DRIVER(cuMemAllocManaged, 6000, cuMemAllocManaged)                                             \
    DRIVER(cuMemAdvise, 12020, cuMemAdvise_v2)                                                     \
    DRIVER(cuArray3DCreate, 3020, cuArray3DCreate_v2)                                              \
    DRIVER(cuArrayDestroy, 2000, cuArrayDestroy)                                                   \
    DRIVER(cuArray3DGetDescriptor, 3020, cuArray3DGetDescriptor_v2)                                \
    DRIVER(cuDeviceGetDefaultMemPool, 11020, cuDeviceGetDefaultMemPool)                            \
    DRIVER(cuDeviceGetMemPool, 11020, cuDeviceGetMemPool)                                          \
    DRIVER(cuDeviceSetMemPool, 11020, cuDeviceSetMemPool)                                          \
    DRIVER(cuMemPoolCreate, 11020, cuMemPoolCreate)                                                \
    DRIVER(cuMemPoolDestroy, 11020, cuMemPoolDestroy)                                              \
    DRIVER(cuMemPoolTrimTo, 11020, cuMemPoolTrimTo)                                                \
    DRIVER(cuMemPoolGetAttribute, 11020, cuMemPoolGetAttribute)                                    \
    DRIVER(cuMemPoolSetAttribute, 11020, cuMemPoolSetAttribute)                                    \
    DRIVER(cuMemPoolSetAccess, 11020, cuMemPoolSetAccess)                                          \
    DRIVER(cuDeviceCanAccessPeer, 4000, cuDeviceCanAccessPeer)                                     \
    DRIVER(cuCtxEnablePeerAccess, 4000, cuCtxEnablePeerAccess)                                     \
    DRIVER(cuCtxDisablePeerAccess, 4000, cuCtxDisablePeerAccess)                                   \
    DRIVER(cuIpcGetMemHandle, 4010, cuIpcGetMemHandle)                                             \
    DRIVER(cuIpcOpenMemHandle, 11000, cuIpcOpenMemHandle_v2)                                       \
    DRIVER(cuIpcCloseMemHandle, 4010, cuIpcCloseMemHandle)                                         \
    DRIVER(cuIpcGetEventHandle, 4010, cuIpcGetEventHandle)                                         \
    DRIVER(cuIpcOpenEventHandle, 4010, cuIpcOpenEventHandle)                                       \
    DRIVER(cuThreadExchangeStreamCaptureMode, 10010, cuThreadExchangeStreamCaptureMode)            \
    DRIVER(cuGraphCreate, 10000, cuGraphCreate)                                                    \
    DRIVER(cuGraphDestroy, 10000, cuGraphDestroy)                                                  \
    DRIVER(cuGraphClone, 10000, cuGraphClone)                                                      \
    DRIVER(cuGraphGetNodes, 10000, cuGraphGetNodes)                                                \
    DRIVER(cuGraphInstantiateWithFlags, 11040, cuGraphInstantiateWithFlags)                        \
    DRIVER(cuGraphExecDestroy, 10000, cuGraphExecDestroy)                                          \
    DRIVER(cuGraphExecUpdate, 12000, cuGraphExecUpdate_v2)                                         \
    DRIVER(cuGraphAddEmptyNode, 10000, cuGraphAddEmptyNode)                                        \
    DRIVER(cuGraphAddHostNode, 10000, cuGraphAddHostNode)                                          \
    DRIVER(cuGraphAddChildGraphNode, 10000, cuGraphAddChildGraphNode)                              \
    DRIVER(cuGraphAddMemsetNode, 10000, cuGraphAddMemsetNode)                                      \
    DRIVER(cuLibraryLoadData, 12000, cuLibraryLoadData)                                            \
    DRIVER(cuLibraryUnload, 12000, cuLibraryUnload)                                                \
    DRIVER(cuLibraryGetKernel, 12000, cuLibraryGetKernel)                                          \
    DRIVER(cuLibraryGetGlobal, 12000, cuLibraryGetGlobal)                                          \
    DRIVER(cuTexObjectCreate, 5000, cuTexObjectCreate)                                             \
    DRIVER(cuTexObjectDestroy, 5000, cuTexObjectDestroy)                                           \
    DRIVER(cuGraphGetRootNodes, 10000, cuGraphGetRootNodes)                                        \
    DRIVER(cuGraphNodeGetType, 10000, cuGraphNodeGetType)                                          \
    DRIVER(cuGraphDestroyNode, 10000, cuGraphDestroyNode)                                          \
    DRIVER(cuGraphChildGraphNodeGetGraph, 10000, cuGraphChildGraphNodeGetGraph)                    \
    DRIVER(cuGraphExecGetFlags, 12000, cuGraphExecGetFlags)                                        \
    DRIVER(cuFuncGetAttribute, 2020, cuFuncGetAttribute)                                           \
    DRIVER(cuFuncSetAttribute, 9000, cuFuncSetAttribute)                                           \
    DRIVER(cuFuncSetCacheConfig, 3000, cuFuncSetCacheConfig)                                       \
    DRIVER(cuFuncGetName, 12030, cuFuncGetName)                                                    \
    DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000,                             \
           cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)                                   \
    DRIVER(cuOccupancyAvailableDynamicSMemPerBlock, 10020,                                         \
           cuOccupancyAvailableDynamicSMemPerBlock)                                                \
    DRIVER(cuOccupancyMaxActiveClusters, 11070, cuOccupancyMaxActiveClusters)                      \
    DRIVER(cuOccupancyMaxPotentialClusterSize, 11070, cuOccupancyMaxPotentialClusterSize)          \
    DRIVER(cuCtxGetLimit, 3010, cuCtxGetLimit)                                                     \
    DRIVER(cuCtxSetLimit, 3010, cuCtxSetLimit)                                                     \
    DRIVER(cuCtxGetCacheConfig, 3020, cuCtxGetCacheConfig)                                         \
    DRIVER(cuCtxSetCacheConfig, 3020, cuCtxSetCacheConfig)                                         \
    DRIVER(cuDeviceGetP2PAttribute, 8000, cuDeviceGetP2PAttribute)                                 \
    DRIVER(cuDeviceGraphMemTrim, 11040, cuDeviceGraphMemTrim)                                      \
    DRIVER(cuProfilerStart, 4000, rt_profiler_mark)                                                \
    DRIVER(cuProfilerStop, 4000, rt_profiler_mark)                                                 \
    DRIVER(cuMemGetDefaultMemPool, 13000, cuMemGetDefaultMemPool)                                  \
    DRIVER(cuMemGetMemPool, 13000, cuMemGetMemPool)                                                \
    DRIVER(cuMemSetMemPool, 13000, cuMemSetMemPool)                                                \
    DRIVER_TWIN(cuStreamGetAttribute, 11000, cuStreamGetAttribute)                                 \
    DRIVER_TWIN(cuStreamSetAttribute, 11000, cuStreamSetAttribute)                                 \
    DRIVER_TWIN(cuMemAllocAsync, 11020, cuMemAllocAsync)                                           \
    DRIVER_TWIN(cuMemFreeAsync, 11020, cuMemFreeAsync)                                             \
    DRIVER_TWIN(cuMemAllocFromPoolAsync, 11020, cuMemAllocFromPoolAsync)                           \
    DRIVER_TWIN(cuMemcpy3D, 3020, cuMemcpy3D_v2)                                                   \
    DRIVER_TWIN(cuMemcpy3DAsync, 3020, cuMemcpy3DAsync_v2)                                         \
    DRIVER_TWIN(cuMemcpyPeer, 4000, cuMemcpyPeer)                                                  \
    DRIVER_TWIN(cuMemcpyPeerAsync, 4000, cuMemcpyPeerAsync)                                        \
    DRIVER_TWIN(cuMemPrefetchAsync, 12020, cuMemPrefetchAsync_v2)                                  \
    DRIVER_TWIN(cuStreamBeginCapture, 10010, cuStreamBeginCapture_v2)                              \
    DRIVER_TWIN(cuStreamBeginCaptureToGraph, 12030, cuStreamBeginCaptureToGraph)                   \
    DRIVER_TWIN(cuStreamEndCapture, 10000, cuStreamEndCapture)                                     \
    DRIVER_TWIN(cuStreamIsCapturing, 10000, cuStreamIsCapturing)                                   \
    DRIVER_TWIN(cuStreamGetCaptureInfo, 12030, cuStreamGetCaptureInfo_v3)                          \
    DRIVER_TWIN(cuGraphLaunch, 10000, cuGraphLaunch)                                               \
    DRIVER_TWIN(cuGraphUpload, 11010, cuGraphUpload)                                               \
    DRIVER_TWIN(cuLaunchKernelEx, 11060, cuLaunchKernelEx)                                         \
    DRIVER_TWIN(cuMemcpy, 4000, cuMemcpy)                                                          \
    DRIVER_TWIN(cuMemcpyHtoD, 3020, cuMemcpyHtoD_v2)                                               \
    DRIVER_TWIN(cuMemcpyDtoH, 3020, cuMemcpyDtoH_v2)                                               \
    DRIVER_TWIN(cuMemcpyDtoD, 3020, cuMemcpyDtoD_v2)                                               \
    DRIVER_TWIN(cuMemcpyAsync, 4000, cuMemcpyAsync)                                                \
    DRIVER_TWIN(cuMemcpyHtoDAsync, 3020, cuMemcpyHtoDAsync_v2)                                     \
    DRIVER_TWIN(cuMemcpyDtoHAsync, 3020, cuMemcpyDtoHAsync_v2)                                     \
    DRIVER_TWIN(cuMemcpyDtoDAsync, 3020, cuMemcpyDtoDAsync_v2)                                     \
    DRIVER_TWIN(cuMemcpy2DUnaligned, 3020, cuMemcpy2DUnaligned_v2)                                 \
    DRIVER_TWIN(cuMemcpy2DAsync, 3020, cuMemcpy2DAsync_v2)                                         \
    DRIVER_TWIN(cuMemsetD8, 3020, cuMemsetD8_v2)                                                   \
    DRIVER_TWIN(cuMemsetD2D8, 3020, cuMemsetD2D8_v2)                                               \
    DRIVER_TWIN(cuMemsetD8Async, 3020, cuMemsetD8Async)                                            \
    DRIVER_TWIN(cuMemsetD2D8Async, 3020, cuMemsetD2D8Async)                                        \
    DRIVER_TWIN(cuStreamSynchronize, 2000, cuStreamSynchronize)                                    \
    DRIVER_TWIN(cuStreamQuery, 2000, cuStreamQuery)                                                \
    DRIVER_TWIN(cuStreamGetFlags, 5050, cuStreamGetFlags)                                          \
    DRIVER_TWIN(cuStreamGetPriority, 5050, cuStreamGetPriority)                                    \
    DRIVER_TWIN(cuStreamGetId, 12000, cuStreamGetId)                                               \
    DRIVER_TWIN(cuStreamGetDevice, 12080, cuStreamGetDevice)                                       \
    DRIVER_TWIN(cuStreamWaitEvent, 3020, cuStreamWaitEvent)                                        \
    DRIVER_TWIN(cuStreamAddCallback, 5000, cuStreamAddCallback)                                    \
    DRIVER_TWIN(cuEventRecord, 2000, cuEventRecord)                                                \
    DRIVER_TWIN(cuEventRecordWithFlags, 11010, cuEventRecordWithFlags)                             \
    DRIVER_TWIN(cuLaunchHostFunc, 10000, cuLaunchHostFunc)

CUresult CUDAAPI rt_profiler_mark(void); // the type of cuProfilerStart, which cuda.h lacks

// By slot: [0] for the legacy, [1] for the per-thread default stream.
struct driver {
#define SLOT(name, version, type) __typeof__(&type) name;
#define TWIN_SLOT(name, version, type) __typeof__(&type) name[2];
    DRIVER_FUNCTIONS(SLOT, TWIN_SLOT)
#undef SLOT
#undef TWIN_SLOT
    __typeof__(&cuGetProcAddress_v2) look_up;
};
extern struct driver rt_driver;

// Finds the driver and initialises it; cudaErrorInsufficientDriver where there is none.
cudaError_t rt_load(void);
// The same, and makes the thread's device's primary context current unless one is.
cudaError_t rt_begin(void);
// Notes a failure as the thread's last error, and returns it.
cudaError_t rt_end(cudaError_t result);
int rt_device(void);
// The driver's function behind a kernel's host stub, or behind a handle that the driver gave.
cudaError_t rt_kernel(const void *host, CUfunction *out);
// The driver's variable behind the host's address of one.
cudaError_t rt_variable(const void *host, CUdeviceptr *start, size_t *size);
bool rt_format(const struct cudaChannelFormatDesc *shape, CUarray_format *format,
               unsigned *channels);
// `pt` is the slot.
cudaError_t rt_copy(void *to, const void *from, size_t count, enum cudaMemcpyKind kind, int pt);
cudaError_t rt_copy_async(void *to, const void *from, size_t count, enum cudaMemcpyKind kind,
                          cudaStream_t stream, int pt);
CUcontext rt_primary(int device, CUresult *result);
void rt_choose_device(int device);

// The runtime's codes have had the driver's numbers since CUDA 10.1.
static inline cudaError_t rt_code(CUresult result) {
    return (cudaError_t)result;
}

// For tests that count how often a function is entered (tests/integration/runtime).
#ifdef RT_COUNTS
void rt_entered(const char *name);
#else
#define rt_entered(name) ((void)0)
#endif

// An exported function: loads, makes a context current, answers, notes a failure.
#define RT_CALL(symbol, parameters, answer)                                                        \
    cudaError_t CUDARTAPI symbol parameters {                                                      \
        rt_entered(#symbol);                                                                       \
        cudaError_t begun_ = rt_begin();                                                           \
        return rt_end(begun_ != cudaSuccess ? begun_ : (answer));                                  \
    }

// The same without a context.
#define RT_PLAIN(symbol, parameters, answer)                                                       \
    cudaError_t CUDARTAPI symbol parameters {                                                      \
        rt_entered(#symbol);                                                                       \
        cudaError_t begun_ = rt_load();                                                            \
        return rt_end(begun_ != cudaSuccess ? begun_ : (answer));                                  \
    }

// In both forms of the default stream; `pt` is the slot.
#define RT_PAIR(symbol, twin, parameters, answer)                                                  \
    cudaError_t CUDARTAPI symbol parameters {                                                      \
        enum { pt = 0 };                                                                           \
        cudaError_t begun_ = rt_begin();                                                           \
        return rt_end(begun_ != cudaSuccess ? begun_ : (answer));                                  \
    }                                                                                              \
    cudaError_t CUDARTAPI twin parameters {                                                        \
        enum { pt = 1 };                                                                           \
        cudaError_t begun_ = rt_begin();                                                           \
        return rt_end(begun_ != cudaSuccess ? begun_ : (answer));                                  \
    }

#endif
