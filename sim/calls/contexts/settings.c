// Settings that a real driver keeps and that change nothing here: limits, cache preferences,
// attributes of functions and streams, who may reach a pool's memory. What is set is told again.
#include "sim/base/handle.h"
#include "sim/border/border.h"
#include "sim/device/devices.h"
#include "sim/device/thread.h"
#include "sim/order/meant.h"
#include "sim/order/queue.h"

#include <string.h>

static CUresult limit_of(size_t *out, CUlimit which) {
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (which >= CU_LIMIT_MAX) {
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    }
    *out = sim_current()->limits[which];
    return CUDA_SUCCESS;
}

static CUresult set_limit(CUlimit which, size_t value) {
    if (which >= CU_LIMIT_MAX) {
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    }
    sim_current()->limits[which] = value;
    return CUDA_SUCCESS;
}

SIM_CALL(cuCtxGetLimit, SIM_CURRENT, (size_t * out, CUlimit which), limit_of(out, which))
SIM_CALL(cuCtxSetLimit, SIM_CURRENT, (CUlimit which, size_t value), set_limit(which, value))

static CUresult cache_of(CUfunc_cache *out) {
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = sim_current()->cache;
    return CUDA_SUCCESS;
}

static CUresult set_cache(CUfunc_cache cache) {
    if (cache > CU_FUNC_CACHE_PREFER_EQUAL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_current()->cache = cache;
    return CUDA_SUCCESS;
}

SIM_CALL(cuCtxGetCacheConfig, SIM_CURRENT, (CUfunc_cache * cache), cache_of(cache))
SIM_CALL(cuCtxSetCacheConfig, SIM_CURRENT, (CUfunc_cache cache), set_cache(cache))

static CUresult known(const void *function) {
    return sim_handle_is(function, SIM_FUNCTION) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult loaded(CUfunctionLoadingState *state, CUfunction function) {
    if (state == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return known(function);
}

SIM_CALL(cuFuncSetAttribute, SIM_CURRENT,
         (CUfunction function, CUfunction_attribute which, int value),
         ((void)value, which >= CU_FUNC_ATTRIBUTE_MAX ? CUDA_ERROR_INVALID_VALUE : known(function)))
SIM_CALL(cuFuncSetCacheConfig, SIM_CURRENT, (CUfunction function, CUfunc_cache cache),
         ((void)cache, known(function)))
SIM_CALL(cuKernelSetAttribute, SIM_READY,
         (CUfunction_attribute which, int value, CUkernel kernel, CUdevice device),
         ((void)value, sim_device_of(device) == NULL    ? CUDA_ERROR_INVALID_DEVICE
                       : which >= CU_FUNC_ATTRIBUTE_MAX ? CUDA_ERROR_INVALID_VALUE
                                                        : known(kernel)))
SIM_CALL(cuKernelSetCacheConfig, SIM_READY, (CUkernel kernel, CUfunc_cache cache, CUdevice device),
         ((void)cache, sim_device_of(device) == NULL ? CUDA_ERROR_INVALID_DEVICE : known(kernel)))
SIM_CALL(cuFuncLoad, SIM_CURRENT, (CUfunction function), known(function))
SIM_CALL(cuFuncIsLoaded, SIM_CURRENT, (CUfunctionLoadingState * state, CUfunction function),
         loaded(state, function))

// Of a device of compute capability 9.0, as the guide's table has it.
enum {
    MULTIPROCESSORS = 132,
    SHARED_OF_ALL = 228 << 10,
    SHARED_OF_BLOCK = 227 << 10,
    LARGEST_CLUSTER = 8
};

// As many blocks as threads allow: 2048 a multiprocessor.
static CUresult occupancy(int *blocks, CUfunction function, int threads) {
    if (blocks == NULL || threads <= 0 || threads > 1024) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *blocks = 2048 / threads;
    return known(function);
}

SIM_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, SIM_CURRENT,
         (int *blocks, CUfunction function, int threads, size_t shared),
         ((void)shared, occupancy(blocks, function, threads)))
SIM_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, SIM_CURRENT,
         (int *blocks, CUfunction function, int threads, size_t shared, unsigned flags),
         ((void)shared, (void)flags, occupancy(blocks, function, threads)))

// All of a multiprocessor's shared memory among so many blocks.
static CUresult shared_room(size_t *bytes, CUfunction function, int blocks) {
    if (bytes == NULL || blocks <= 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    size_t share = (size_t)SHARED_OF_ALL / (size_t)blocks;
    *bytes = share < SHARED_OF_BLOCK ? share : SHARED_OF_BLOCK;
    return known(function);
}

static CUresult clusters(int *out, CUfunction function, int number) {
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = number;
    return known(function);
}

static CUresult best_block(int *blocks, int *threads, CUfunction function, int limit) {
    if (blocks == NULL || threads == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *threads = limit > 0 && limit < 1024 ? limit : 1024;
    *blocks = MULTIPROCESSORS * (2048 / *threads);
    return known(function);
}

SIM_CALL(cuOccupancyAvailableDynamicSMemPerBlock, SIM_CURRENT,
         (size_t * bytes, CUfunction function, int blocks, int threads),
         ((void)threads, shared_room(bytes, function, blocks)))
SIM_CALL(cuOccupancyMaxActiveClusters, SIM_CURRENT,
         (int *count, CUfunction function, const CUlaunchConfig *config),
         ((void)config, clusters(count, function, MULTIPROCESSORS / LARGEST_CLUSTER)))
SIM_CALL(cuOccupancyMaxPotentialClusterSize, SIM_CURRENT,
         (int *size, CUfunction function, const CUlaunchConfig *config),
         ((void)config, clusters(size, function, LARGEST_CLUSTER)))
SIM_CALL(cuOccupancyMaxPotentialBlockSize, SIM_CURRENT,
         (int *blocks, int *threads, CUfunction function, CUoccupancyB2DSize by_size, size_t shared,
          int limit),
         ((void)by_size, (void)shared, best_block(blocks, threads, function, limit)))
SIM_CALL(cuOccupancyMaxPotentialBlockSizeWithFlags, SIM_CURRENT,
         (int *blocks, int *threads, CUfunction function, CUoccupancyB2DSize by_size, size_t shared,
          int limit, unsigned flags),
         ((void)by_size, (void)shared, (void)flags, best_block(blocks, threads, function, limit)))

// Profilers' marks. Not in cuda.h.
__attribute__((visibility("default"))) CUresult CUDAAPI cuProfilerStart(void);
__attribute__((visibility("default"))) CUresult CUDAAPI cuProfilerStop(void);
SIM_CALL(cuProfilerStart, SIM_CURRENT, (void), CUDA_SUCCESS)
SIM_CALL(cuProfilerStop, SIM_CURRENT, (void), CUDA_SUCCESS)

static CUresult stream_attribute(CUstream handle, bool per_thread, CUstreamAttrID which,
                                 CUstreamAttrValue *out) {
    CUresult result = CUDA_SUCCESS;
    const struct CUstream_st *stream = sim_stream_of(handle, per_thread, &result);
    if (stream == NULL || out == NULL) {
        return out == NULL ? CUDA_ERROR_INVALID_VALUE : result;
    }
    memset(out, 0, sizeof *out);
    if (which == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
        out->priority = stream->priority;
    }
    return CUDA_SUCCESS;
}

static CUresult set_stream_attribute(CUstream handle, bool per_thread, CUstreamAttrID which,
                                     const CUstreamAttrValue *value) {
    CUresult result = CUDA_SUCCESS;
    struct CUstream_st *stream = sim_stream_of(handle, per_thread, &result);
    if (stream == NULL || value == NULL) {
        return value == NULL ? CUDA_ERROR_INVALID_VALUE : result;
    }
    if (which == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
        stream->priority = value->priority;
    }
    return CUDA_SUCCESS;
}

SIM_PAIR(cuStreamGetAttribute, cuStreamGetAttribute_ptsz, SIM_CURRENT,
         (CUstream stream, CUstreamAttrID which, CUstreamAttrValue *value),
         stream_attribute(stream, per_thread, which, value))
SIM_PAIR(cuStreamSetAttribute, cuStreamSetAttribute_ptsz, SIM_CURRENT,
         (CUstream stream, CUstreamAttrID which, const CUstreamAttrValue *value),
         set_stream_attribute(stream, per_thread, which, value))

static CUresult pool_access(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count) {
    bool valid = sim_handle_is(pool, SIM_POOL) && (count == 0 || access != NULL);
    for (size_t i = 0; valid && i < count; i++) {
        valid = sim_device_of(access[i].location.id) != NULL;
    }
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_CALL(cuMemPoolSetAccess, SIM_READY,
         (CUmemoryPool pool, const CUmemAccessDesc *access, size_t count),
         pool_access(pool, access, count))
