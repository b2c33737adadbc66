// What the headers of 13.0 lack, in both their forms; and the code that one of them answers.
#ifndef SIM_NEWER_H
#define SIM_NEWER_H

#include <cuda.h>
#include <stdint.h>

#define SIM_NEWER(symbol, parameters)                                                              \
    __attribute__((visibility("default"))) CUresult CUDAAPI symbol parameters;                     \
    __attribute__((visibility("default"))) CUresult CUDAAPI symbol##_ptsz parameters;
SIM_NEWER(cuStreamBeginRecaptureToGraph, (CUstream, CUstreamCaptureMode, CUgraph, void *, void *))
SIM_NEWER(cuStreamBeginCaptureToCig, (CUstream, void *))
SIM_NEWER(cuStreamEndCaptureToCig, (CUstream))
SIM_NEWER(cuStreamBeginUnheardOfCapture, (CUstream, uint64_t, uint64_t, uint64_t, uint64_t,
                                          uint64_t, uint64_t, uint64_t, uint64_t, uint64_t))
enum { SIM_ERROR_GRAPH_RECAPTURE_FAILURE = 918 };

#endif
