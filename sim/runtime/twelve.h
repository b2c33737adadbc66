// Included where libcudart.so.12 is made: what the sources define with the parameters of CUDA 13
// has a name of its own there. cudaGetDeviceProperties fills a structure of another size in each,
// so that version 12 exports none of 13's.
#ifndef SIM_RUNTIME_TWELVE_H
#define SIM_RUNTIME_TWELVE_H

#include <cuda_runtime_api.h>

#define RT_RENAMED(name, renamed) extern __typeof__(name) renamed
RT_RENAMED(cudaGetDeviceProperties, rt_properties_of_13);
RT_RENAMED(cudaMemAdvise, cudaMemAdvise_v2);
RT_RENAMED(cudaMemPrefetchAsync, cudaMemPrefetchAsync_v2);
RT_RENAMED(cudaMemPrefetchAsync, cudaMemPrefetchAsync_v2_ptsz);
RT_RENAMED(cudaStreamGetCaptureInfo, cudaStreamGetCaptureInfo_v3);
RT_RENAMED(cudaStreamGetCaptureInfo, cudaStreamGetCaptureInfo_v3_ptsz);
#undef RT_RENAMED

#define cudaGetDeviceProperties rt_properties_of_13
#define cudaMemAdvise cudaMemAdvise_v2
#define cudaMemPrefetchAsync cudaMemPrefetchAsync_v2
#define cudaMemPrefetchAsync_ptsz cudaMemPrefetchAsync_v2_ptsz
#define cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_v3
#define cudaStreamGetCaptureInfo_ptsz cudaStreamGetCaptureInfo_v3_ptsz

#endif
