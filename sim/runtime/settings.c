// Settings of the runtime API: limits, cache preferences, attributes of streams, devices and pools,
// profilers' marks. The driver's, under other names.
#include "sim/runtime/runtime.h"

RT_CALL(cudaDeviceGetLimit, (size_t * value, enum cudaLimit which),
        rt_code(rt_driver.cuCtxGetLimit(value, (CUlimit)which)))
RT_CALL(cudaDeviceSetLimit, (enum cudaLimit which, size_t value),
        rt_code(rt_driver.cuCtxSetLimit((CUlimit)which, value)))
RT_CALL(cudaDeviceGetCacheConfig, (enum cudaFuncCache * cache),
        rt_code(rt_driver.cuCtxGetCacheConfig((CUfunc_cache *)(void *)cache)))
RT_CALL(cudaDeviceSetCacheConfig, (enum cudaFuncCache cache),
        rt_code(rt_driver.cuCtxSetCacheConfig((CUfunc_cache)cache)))
RT_PLAIN(cudaDeviceGetP2PAttribute,
         (int *value, enum cudaDeviceP2PAttr which, int device, int other),
         rt_code(rt_driver.cuDeviceGetP2PAttribute(value, (CUdevice_P2PAttribute)which, device,
                                                   other)))
RT_PLAIN(cudaDeviceGraphMemTrim, (int device), rt_code(rt_driver.cuDeviceGraphMemTrim(device)))

// Of cuda_profiler_api.h, which not every package of headers has.
cudaError_t CUDARTAPI cudaProfilerStart(void);
cudaError_t CUDARTAPI cudaProfilerStop(void);
RT_CALL(cudaProfilerStart, (void), rt_code(rt_driver.cuProfilerStart()))
RT_CALL(cudaProfilerStop, (void), rt_code(rt_driver.cuProfilerStop()))

// The runtime's and the driver's attributes of streams have the same layout.
_Static_assert(sizeof(cudaLaunchAttributeValue) == sizeof(CUlaunchAttributeValue),
               "the same layout");

RT_PAIR(cudaStreamGetAttribute, cudaStreamGetAttribute_ptsz,
        (cudaStream_t stream, cudaLaunchAttributeID which, cudaLaunchAttributeValue *value),
        rt_code(rt_driver.cuStreamGetAttribute[pt](stream, (CUstreamAttrID)which,
                                                   (CUstreamAttrValue *)(void *)value)))
RT_PAIR(cudaStreamSetAttribute, cudaStreamSetAttribute_ptsz,
        (cudaStream_t stream, cudaLaunchAttributeID which, const cudaLaunchAttributeValue *value),
        rt_code(rt_driver.cuStreamSetAttribute[pt](stream, (CUstreamAttrID)which,
                                                   (const CUstreamAttrValue *)(const void *)value)))

// A pool's access by a device is a matter of the driver, which is told places of its own type.
RT_PLAIN(cudaMemGetDefaultMemPool,
         (cudaMemPool_t * pool, struct cudaMemLocation *location, enum cudaMemAllocationType type),
         rt_code(rt_driver.cuMemGetDefaultMemPool(pool, (CUmemLocation *)(void *)location,
                                                  (CUmemAllocationType)type)))
RT_PLAIN(cudaMemGetMemPool,
         (cudaMemPool_t * pool, struct cudaMemLocation *location, enum cudaMemAllocationType type),
         rt_code(rt_driver.cuMemGetMemPool(pool, (CUmemLocation *)(void *)location,
                                           (CUmemAllocationType)type)))
RT_PLAIN(cudaMemSetMemPool,
         (struct cudaMemLocation * location, enum cudaMemAllocationType type, cudaMemPool_t pool),
         rt_code(rt_driver.cuMemSetMemPool((CUmemLocation *)(void *)location,
                                           (CUmemAllocationType)type, pool)))
