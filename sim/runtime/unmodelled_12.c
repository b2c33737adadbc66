// What libcudart.so.12 exports beside what version 13 does, and names that have other parameters in
// it: not modelled, as in unmodelled.c.

int rt_unmodelled(const char *name); // in refuse.c

#define RT_UNMODELLED(name)                                                                        \
    int name(void);                                                                                \
    int name(void) {                                                                               \
        return rt_unmodelled(#name);                                                               \
    }
// clang-format off
RT_UNMODELLED(cudaEventElapsedTime_v2)
RT_UNMODELLED(cudaGetDeviceProperties)
RT_UNMODELLED(cudaGraphAddDependencies_v2)
RT_UNMODELLED(cudaGraphAddNode_v2)
RT_UNMODELLED(cudaGraphGetEdges_v2)
RT_UNMODELLED(cudaGraphNodeGetDependencies_v2)
RT_UNMODELLED(cudaGraphNodeGetDependentNodes_v2)
RT_UNMODELLED(cudaGraphRemoveDependencies_v2)
RT_UNMODELLED(cudaLaunchCooperativeKernelMultiDevice)
RT_UNMODELLED(cudaMemAdvise)
RT_UNMODELLED(cudaMemPrefetchAsync)
RT_UNMODELLED(cudaMemPrefetchAsync_ptsz)
RT_UNMODELLED(cudaSetDoubleForDevice)
RT_UNMODELLED(cudaSetDoubleForHost)
RT_UNMODELLED(cudaSignalExternalSemaphoresAsync_v2)
RT_UNMODELLED(cudaSignalExternalSemaphoresAsync_v2_ptsz)
RT_UNMODELLED(cudaStreamGetCaptureInfo)
RT_UNMODELLED(cudaStreamGetCaptureInfo_ptsz)
RT_UNMODELLED(cudaStreamGetCaptureInfo_v2)
RT_UNMODELLED(cudaStreamGetCaptureInfo_v2_ptsz)
RT_UNMODELLED(cudaStreamUpdateCaptureDependencies_v2)
RT_UNMODELLED(cudaStreamUpdateCaptureDependencies_v2_ptsz)
RT_UNMODELLED(cudaThreadExit)
RT_UNMODELLED(cudaThreadGetCacheConfig)
RT_UNMODELLED(cudaThreadGetLimit)
RT_UNMODELLED(cudaThreadSetCacheConfig)
RT_UNMODELLED(cudaThreadSetLimit)
RT_UNMODELLED(cudaThreadSynchronize)
RT_UNMODELLED(cudaWaitExternalSemaphoresAsync_v2)
RT_UNMODELLED(cudaWaitExternalSemaphoresAsync_v2_ptsz)
