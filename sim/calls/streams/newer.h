// What the headers of 13.0 lack, in both their forms; and the code that one of them answers. Later
// headers have the same with types of their own.
#ifndef SIM_NEWER_H
#define SIM_NEWER_H

#include <cuda.h>
#include <stdint.h>

#if CUDA_VERSION >= 13010
typedef CUstreamCigCaptureParams *sim_cig_parameters;
#else
typedef void *sim_cig_parameters;
#endif
#if CUDA_VERSION >= 13030
typedef CUgraphRecaptureCallback sim_recapture_callback;
#else
typedef void *sim_recapture_callback;
#endif

#define SIM_NEWER(symbol, parameters)                                                              \
    __attribute__((visibility("default"))) CUresult CUDAAPI symbol parameters;                     \
    __attribute__((visibility("default"))) CUresult CUDAAPI symbol##_ptsz parameters;
SIM_NEWER(cuStreamBeginRecaptureToGraph,
          (CUstream, CUstreamCaptureMode, CUgraph, sim_recapture_callback, void *))
SIM_NEWER(cuStreamBeginCaptureToCig, (CUstream, sim_cig_parameters))
SIM_NEWER(cuStreamEndCaptureToCig, (CUstream))
SIM_NEWER(cuStreamBeginUnheardOfCapture, (CUstream, uint64_t, uint64_t, uint64_t, uint64_t,
                                          uint64_t, uint64_t, uint64_t, uint64_t, uint64_t))
enum { SIM_ERROR_GRAPH_RECAPTURE_FAILURE = 918 };

#endif
