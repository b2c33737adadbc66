// Devices, the current one of each thread, and errors.
//
// A thread without a current context gets its device's primary one, which the runtime retains once
// a process and again after cudaDeviceReset.
#include "sim/runtime/runtime.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DEVICES = 64 };

static _Thread_local int chosen = -1;
static _Thread_local cudaError_t last_error = cudaSuccess;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(CUcontext) primary[MAX_DEVICES]; // as retained; written under the lock

cudaError_t rt_end(cudaError_t result) {
    if (result != cudaSuccess) {
        last_error = result;
    }
    return result;
}

int rt_device(void) {
    CUcontext context = NULL;
    CUdevice device = 0;
    if (rt_driver.cuCtxGetCurrent(&context) == CUDA_SUCCESS && context != NULL &&
        rt_driver.cuCtxGetDevice(&device) == CUDA_SUCCESS) {
        return device;
    }
    return chosen >= 0 ? chosen : 0;
}

static CUresult retain(int device, CUcontext *out) {
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    *out = atomic_load(&primary[device]);
    if (*out == NULL) {
        result = rt_driver.cuDevicePrimaryCtxRetain(out, device);
        if (result == CUDA_SUCCESS) {
            atomic_store(&primary[device], *out);
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}

CUcontext rt_primary(int device, CUresult *result) {
    CUcontext context = NULL;
    bool valid = device >= 0 && device < MAX_DEVICES;
    *result = valid ? retain(device, &context) : CUDA_ERROR_INVALID_DEVICE;
    return context;
}

static CUresult use(int device) {
    CUcontext context = NULL;
    CUresult result = retain(device, &context);
    return result == CUDA_SUCCESS ? rt_driver.cuCtxSetCurrent(context) : result;
}

// A primary context that the runtime gave up at a reset, still current in this thread.
static bool was_reset(void) {
    unsigned flags = 0;
    int active = 1, device = chosen >= 0 ? chosen : 0;
    CUdevice unused = 0;
    if (atomic_load(&primary[device]) != NULL) {
        return false;
    }
    rt_driver.cuDevicePrimaryCtxGetState(device, &flags, &active);
    return !active && rt_driver.cuCtxGetDevice(&unused) != CUDA_SUCCESS;
}

cudaError_t rt_begin(void) {
    CUcontext context = NULL;
    cudaError_t result = rt_load();
    if (result != cudaSuccess) {
        return result;
    }
    CUresult code = rt_driver.cuCtxGetCurrent(&context);
    if (code == CUDA_SUCCESS && (context == NULL || was_reset())) {
        code = use(chosen >= 0 ? chosen : 0);
    }
    return rt_code(code);
}

static cudaError_t set_device(int device) {
    int count = 0;
    CUresult result = rt_driver.cuDeviceGetCount(&count);
    if (result != CUDA_SUCCESS) {
        return rt_code(result);
    }
    if (device < 0 || device >= count || device >= MAX_DEVICES) {
        return cudaErrorInvalidDevice;
    }
    chosen = device;
    return rt_code(use(device));
}

static cudaError_t put(int *out, int value) {
    if (out == NULL) {
        return cudaErrorInvalidValue;
    }
    *out = value;
    return cudaSuccess;
}

RT_PLAIN(cudaSetDevice, (int device), set_device(device))
RT_PLAIN(cudaInitDevice, (int device, unsigned device_flags, unsigned flags),
         flags > cudaInitDeviceFlagsAreValid || device_flags > 0xff ? cudaErrorInvalidValue
                                                                    : set_device(device))
RT_PLAIN(cudaGetDevice, (int *device), put(device, rt_device()))
RT_PLAIN(cudaGetDeviceCount, (int *count),
         count == NULL ? cudaErrorInvalidValue : rt_code(rt_driver.cuDeviceGetCount(count)))
RT_PLAIN(cudaDriverGetVersion, (int *version),
         version == NULL ? cudaErrorInvalidValue : rt_code(rt_driver.cuDriverGetVersion(version)))
RT_PLAIN(cudaRuntimeGetVersion, (int *version), put(version, CUDART_VERSION))
RT_CALL(cudaDeviceSynchronize, (void), rt_code(rt_driver.cuCtxSynchronize()))
RT_PLAIN(cudaDeviceGetAttribute, (int *value, enum cudaDeviceAttr which, int device),
         rt_code(rt_driver.cuDeviceGetAttribute(value, (CUdevice_attribute)which, device)))
RT_PLAIN(cudaDeviceGetPCIBusId, (char *text, int length, int device),
         rt_code(rt_driver.cuDeviceGetPCIBusId(text, length, device)))
RT_PLAIN(cudaDeviceGetByPCIBusId, (int *device, const char *text),
         rt_code(rt_driver.cuDeviceGetByPCIBusId(device, text)))
RT_CALL(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest),
        rt_code(rt_driver.cuCtxGetStreamPriorityRange(least, greatest)))
RT_CALL(cudaGetDeviceFlags, (unsigned *flags), rt_code(rt_driver.cuCtxGetFlags(flags)))
RT_PLAIN(cudaSetDeviceFlags, (unsigned flags),
         rt_code(rt_driver.cuDevicePrimaryCtxSetFlags(chosen >= 0 ? chosen : 0, flags)))

static cudaError_t reset(void) {
    int device = rt_device();
    pthread_mutex_lock(&lock);
    bool retained = atomic_exchange(&primary[device], NULL) != NULL;
    CUresult result = rt_driver.cuDevicePrimaryCtxReset(device);
    if (retained) {
        rt_driver.cuDevicePrimaryCtxRelease(device);
    }
    pthread_mutex_unlock(&lock);
    chosen = device;
    return rt_code(result);
}

RT_PLAIN(cudaDeviceReset, (void), reset())

static int number_of(CUdevice_attribute which, int device) {
    int value = 0;
    rt_driver.cuDeviceGetAttribute(&value, which, device);
    return value;
}

static const struct {
    size_t offset;
    CUdevice_attribute which;
} numbers[] = {
#define NUMBER(field, which) {offsetof(struct cudaDeviceProp, field), CU_DEVICE_ATTRIBUTE_##which},
    NUMBER(major, COMPUTE_CAPABILITY_MAJOR) NUMBER(minor, COMPUTE_CAPABILITY_MINOR) NUMBER(
        multiProcessorCount, MULTIPROCESSOR_COUNT) NUMBER(warpSize, WARP_SIZE)
        NUMBER(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK) NUMBER(
            maxThreadsDim[0], MAX_BLOCK_DIM_X) NUMBER(maxThreadsDim[1], MAX_BLOCK_DIM_Y)
            NUMBER(maxThreadsDim[2], MAX_BLOCK_DIM_Z) NUMBER(maxGridSize[0], MAX_GRID_DIM_X) NUMBER(
                maxGridSize[1], MAX_GRID_DIM_Y) NUMBER(maxGridSize[2], MAX_GRID_DIM_Z)
                NUMBER(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR) NUMBER(
                    maxBlocksPerMultiProcessor,
                    MAX_BLOCKS_PER_MULTIPROCESSOR) NUMBER(regsPerBlock, MAX_REGISTERS_PER_BLOCK)
                    NUMBER(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR) NUMBER(
                        memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH) NUMBER(l2CacheSize, L2_CACHE_SIZE)
                        NUMBER(unifiedAddressing, UNIFIED_ADDRESSING) NUMBER(
                            managedMemory, MANAGED_MEMORY) NUMBER(concurrentManagedAccess,
                                                                  CONCURRENT_MANAGED_ACCESS)
                            NUMBER(canMapHostMemory, CAN_MAP_HOST_MEMORY) NUMBER(
                                pciBusID, PCI_BUS_ID) NUMBER(asyncEngineCount, ASYNC_ENGINE_COUNT)
                                NUMBER(concurrentKernels, CONCURRENT_KERNELS) NUMBER(
                                    cooperativeLaunch, COOPERATIVE_LAUNCH) NUMBER(clusterLaunch,
                                                                                  CLUSTER_LAUNCH)
                                    NUMBER(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED)
                                        NUMBER(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED)
                                            NUMBER(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED)
                                                NUMBER(computePreemptionSupported,
                                                       COMPUTE_PREEMPTION_SUPPORTED)
                                                    NUMBER(hostRegisterSupported,
                                                           HOST_REGISTER_SUPPORTED)
                                                        NUMBER(memoryPoolsSupported,
                                                               MEMORY_POOLS_SUPPORTED)
#undef NUMBER
};

static const struct {
    size_t offset;
    CUdevice_attribute which;
} sizes[] = {
#define SIZE(field, which) {offsetof(struct cudaDeviceProp, field), CU_DEVICE_ATTRIBUTE_##which},
    SIZE(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK)
        SIZE(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
            SIZE(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)
                SIZE(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK)
                    SIZE(totalConstMem, TOTAL_CONSTANT_MEMORY) SIZE(memPitch, MAX_PITCH)
                        SIZE(textureAlignment, TEXTURE_ALIGNMENT)
                            SIZE(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT)
                                SIZE(surfaceAlignment, SURFACE_ALIGNMENT)
#undef SIZE
};

static cudaError_t properties(struct cudaDeviceProp *p, int device) {
    if (p == NULL) {
        return cudaErrorInvalidValue;
    }
    memset(p, 0, sizeof *p);
    CUresult result = rt_driver.cuDeviceGetName(p->name, sizeof p->name, device);
    if (result != CUDA_SUCCESS) {
        return rt_code(result);
    }
    rt_driver.cuDeviceTotalMem(&p->totalGlobalMem, device);
    rt_driver.cuDeviceGetUuid((CUuuid *)&p->uuid, device);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        *(int *)(void *)((char *)p + numbers[i].offset) = number_of(numbers[i].which, device);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        *(size_t *)(void *)((char *)p + sizes[i].offset) =
            (size_t)number_of(sizes[i].which, device);
    }
    return cudaSuccess;
}

RT_PLAIN(cudaGetDeviceProperties, (struct cudaDeviceProp * p, int device), properties(p, device))

// ---- errors: neither needs a context, nor counts as a call that could fail ----

cudaError_t CUDARTAPI cudaGetLastError(void) {
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t CUDARTAPI cudaPeekAtLastError(void) {
    return last_error;
}

// Those that programs meet most; the rest are told by the driver's names.
static const struct {
    cudaError_t code;
    const char *name;
} names[] = {
    {cudaSuccess, "cudaSuccess"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation"},
    {cudaErrorInitializationError, "cudaErrorInitializationError"},
    {cudaErrorCudartUnloading, "cudaErrorCudartUnloading"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver"},
    {cudaErrorNoDevice, "cudaErrorNoDevice"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice"},
    {cudaErrorDeviceUninitialized, "cudaErrorDeviceUninitialized"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle"},
    {cudaErrorSymbolNotFound, "cudaErrorSymbolNotFound"},
    {cudaErrorNotReady, "cudaErrorNotReady"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress"},
    {cudaErrorContextIsDestroyed, "cudaErrorContextIsDestroyed"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure"},
    {cudaErrorNotPermitted, "cudaErrorNotPermitted"},
    {cudaErrorNotSupported, "cudaErrorNotSupported"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated"},
    {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled"},
    {cudaErrorUnknown, "cudaErrorUnknown"},
};

const char *CUDARTAPI cudaGetErrorName(cudaError_t error) {
    const char *name = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i].code == error) {
            return names[i].name;
        }
    }
    if (rt_load() == cudaSuccess) {
        rt_driver.cuGetErrorName((CUresult)error, &name);
    }
    return name != NULL ? name : "unrecognized error code";
}

// Of codes that only the runtime has.
static const char *own_text(cudaError_t error) {
    switch ((int)error) {
    case cudaErrorInsufficientDriver:
        return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorInvalidConfiguration:
        return "invalid configuration argument";
    case cudaErrorInvalidMemcpyDirection:
        return "invalid copy direction for memcpy";
    case cudaErrorInvalidDeviceFunction:
        return "invalid device function";
    default:
        return NULL;
    }
}

const char *CUDARTAPI cudaGetErrorString(cudaError_t error) {
    const char *text = own_text(error);
    if (text == NULL && rt_load() == cudaSuccess) {
        rt_driver.cuGetErrorString((CUresult)error, &text);
    }
    return text != NULL ? text : "unrecognized error code";
}

// ---- the driver's entry points ----

static cudaError_t entry_point(const char *symbol, void **out, unsigned version,
                               unsigned long long flags, bool per_thread,
                               enum cudaDriverEntryPointQueryResult *status) {
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    if (flags == cudaEnableDefault && per_thread) {
        flags = cudaEnablePerThreadDefaultStream;
    }
    CUresult result = rt_driver.look_up(symbol, out, (int)version, flags, &found);
    if (status != NULL) {
        *status = (enum cudaDriverEntryPointQueryResult)found;
    }
    bool told = result == CUDA_ERROR_NOT_FOUND && status != NULL;
    return told ? cudaSuccess : rt_code(result);
}

RT_PAIR(cudaGetDriverEntryPoint, cudaGetDriverEntryPoint_ptsz,
        (const char *symbol, void **out, unsigned long long flags,
         enum cudaDriverEntryPointQueryResult *status),
        entry_point(symbol, out, CUDART_VERSION, flags, pt, status))
RT_PAIR(cudaGetDriverEntryPointByVersion, cudaGetDriverEntryPointByVersion_ptsz,
        (const char *symbol, void **out, unsigned version, unsigned long long flags,
         enum cudaDriverEntryPointQueryResult *status),
        entry_point(symbol, out, version, flags, pt, status))
