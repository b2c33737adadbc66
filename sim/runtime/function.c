// What the runtime API tells and is told of kernels: attributes, occupancy.
#include "sim/runtime/runtime.h"

#include <string.h>

static int number_of(CUfunction function, CUfunction_attribute which) {
    int value = 0;
    rt_driver.cuFuncGetAttribute(&value, which, function);
    return value;
}

static cudaError_t attributes(struct cudaFuncAttributes *out, const void *host) {
    CUfunction f = NULL;
    int threads = 0;
    if (out == NULL) {
        return cudaErrorInvalidValue;
    }
    cudaError_t found = rt_kernel(host, &f);
    if (found != cudaSuccess ||
        rt_driver.cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f) != 0) {
        return cudaErrorInvalidDeviceFunction;
    }
    memset(out, 0, sizeof *out);
    out->maxThreadsPerBlock = threads;
    out->sharedSizeBytes = (size_t)number_of(f, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    out->constSizeBytes = (size_t)number_of(f, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
    out->localSizeBytes = (size_t)number_of(f, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    out->numRegs = number_of(f, CU_FUNC_ATTRIBUTE_NUM_REGS);
    out->ptxVersion = number_of(f, CU_FUNC_ATTRIBUTE_PTX_VERSION);
    out->binaryVersion = number_of(f, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    return cudaSuccess;
}

// Answers with what `call` answers for the driver's function behind `host`.
#define OF_KERNEL(symbol, parameters, call)                                                        \
    static cudaError_t symbol##_of parameters {                                                    \
        CUfunction function = NULL;                                                                \
        cudaError_t found = rt_kernel(host, &function);                                            \
        return found != cudaSuccess ? found : rt_function_code(call);                              \
    }

// The driver knows no such function.
static cudaError_t rt_function_code(CUresult result) {
    return result == CUDA_ERROR_INVALID_HANDLE ? cudaErrorInvalidDeviceFunction : rt_code(result);
}

static CUlaunchConfig shape_of(const cudaLaunchConfig_t *c) {
    return (CUlaunchConfig){.gridDimX = c->gridDim.x,
                            .gridDimY = c->gridDim.y,
                            .gridDimZ = c->gridDim.z,
                            .blockDimX = c->blockDim.x,
                            .blockDimY = c->blockDim.y,
                            .blockDimZ = c->blockDim.z,
                            .sharedMemBytes = (unsigned)c->dynamicSmemBytes,
                            .hStream = c->stream};
}

OF_KERNEL(set, (const void *host, enum cudaFuncAttribute which, int value),
          rt_driver.cuFuncSetAttribute(function, (CUfunction_attribute)which, value))
OF_KERNEL(set_cache, (const void *host, enum cudaFuncCache cache),
          rt_driver.cuFuncSetCacheConfig(function, (CUfunc_cache)cache))
OF_KERNEL(name, (const char **out, const void *host), rt_driver.cuFuncGetName(out, function))
OF_KERNEL(blocks, (int *out, const void *host, int threads, size_t shared, unsigned flags),
          rt_driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, function, threads,
                                                                         shared, flags))
OF_KERNEL(room, (size_t * out, const void *host, int blocks, int threads),
          rt_driver.cuOccupancyAvailableDynamicSMemPerBlock(out, function, blocks, threads))
OF_KERNEL(clusters, (int *out, const void *host, const CUlaunchConfig *shape),
          rt_driver.cuOccupancyMaxActiveClusters(out, function, shape))
OF_KERNEL(cluster, (int *out, const void *host, const CUlaunchConfig *shape),
          rt_driver.cuOccupancyMaxPotentialClusterSize(out, function, shape))

RT_CALL(cudaFuncGetAttributes, (struct cudaFuncAttributes * out, const void *host),
        attributes(out, host))
RT_CALL(cudaFuncSetAttribute, (const void *host, enum cudaFuncAttribute which, int value),
        set_of(host, which, value))
RT_CALL(cudaFuncSetCacheConfig, (const void *host, enum cudaFuncCache cache),
        set_cache_of(host, cache))
RT_CALL(cudaFuncGetName, (const char **out, const void *host), name_of(out, host))
RT_CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
        (int *out, const void *host, int threads, size_t shared),
        blocks_of(out, host, threads, shared, 0))
RT_CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
        (int *out, const void *host, int threads, size_t shared, unsigned flags),
        blocks_of(out, host, threads, shared, flags))
RT_CALL(cudaOccupancyAvailableDynamicSMemPerBlock,
        (size_t * out, const void *host, int blocks, int threads),
        room_of(out, host, blocks, threads))

static cudaError_t with_shape(cudaError_t (*ask)(int *, const void *, const CUlaunchConfig *),
                              int *out, const void *host, const cudaLaunchConfig_t *config) {
    if (config == NULL) {
        return cudaErrorInvalidValue;
    }
    CUlaunchConfig shape = shape_of(config);
    return ask(out, host, &shape);
}

RT_CALL(cudaOccupancyMaxActiveClusters,
        (int *out, const void *host, const cudaLaunchConfig_t *config),
        with_shape(clusters_of, out, host, config))
RT_CALL(cudaOccupancyMaxPotentialClusterSize,
        (int *out, const void *host, const cudaLaunchConfig_t *config),
        with_shape(cluster_of, out, host, config))

// ---- launches ----

static cudaError_t launch(const cudaLaunchConfig_t *c, const void *host, void **parameters,
                          int pt) {
    CUfunction function = NULL;
    if (c == NULL) {
        return cudaErrorInvalidConfiguration;
    }
    cudaError_t found = rt_kernel(host, &function);
    if (found != cudaSuccess) {
        return found;
    }
    CUlaunchConfig config = shape_of(c);
    return rt_function_code(rt_driver.cuLaunchKernelEx[pt](&config, function, parameters, NULL));
}

static cudaError_t launch_plain(const void *host, dim3 grid, dim3 block, void **parameters,
                                size_t shared, cudaStream_t stream, int pt) {
    cudaLaunchConfig_t config = {
        .gridDim = grid, .blockDim = block, .dynamicSmemBytes = shared, .stream = stream};
    return launch(&config, host, parameters, pt);
}

RT_PAIR(cudaLaunchKernel, cudaLaunchKernel_ptsz,
        (const void *host, dim3 grid, dim3 block, void **parameters, size_t shared,
         cudaStream_t stream),
        launch_plain(host, grid, block, parameters, shared, stream, pt))
RT_PAIR(cudaLaunchCooperativeKernel, cudaLaunchCooperativeKernel_ptsz,
        (const void *host, dim3 grid, dim3 block, void **parameters, size_t shared,
         cudaStream_t stream),
        launch_plain(host, grid, block, parameters, shared, stream, pt))
RT_PAIR(cudaLaunchKernelExC, cudaLaunchKernelExC_ptsz,
        (const cudaLaunchConfig_t *config, const void *host, void **parameters),
        launch(config, host, parameters, pt))

// What code compiled by newer nvccs calls.
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **parameters,
                               size_t shared, cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **parameters,
                                    size_t shared, cudaStream_t stream);

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **parameters,
                               size_t shared, cudaStream_t stream) {
    return cudaLaunchKernel(kernel, grid, block, parameters, shared, stream);
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **parameters,
                                    size_t shared, cudaStream_t stream) {
    return cudaLaunchKernel_ptsz(kernel, grid, block, parameters, shared, stream);
}
