/*
 * Calls that have a hook only so that the pools learn of a failed context when the program does: if
 * such a call returns an error after which every call in its context fails, the next allocation
 * returns that error too, as the driver's own would (free_fence.h, bfc_reuse_note_failure). The
 * calls of the other tables in this folder note a failure as well. A failure that only calls
 * without a hook have returned is noticed at the next free.
 *
 * A row: NAME, parameters, arguments.
 */
#ifndef BFC_INTERPOSE_FAILURE_CALLS_H
#define BFC_INTERPOSE_FAILURE_CALLS_H

#include <cuda.h>

/* A call and its twin NAME_ptsz, which uses the calling thread's own default stream. */
#define BFC_BOTH_TWINS(X, name, parameters, arguments)                                             \
    X(name, parameters, arguments) X(name##_ptsz, parameters, arguments)

#define BFC_FAILURE_CALLS(X)                                                                       \
    X(cuCtxSynchronize, (void), ())                                                                \
    X(cuCtxSynchronize_v2, (CUcontext context), (context))                                         \
    X(cuEventSynchronize, (CUevent event), (event))                                                \
    X(cuEventQuery, (CUevent event), (event))                                                      \
    BFC_BOTH_TWINS(X, cuStreamSynchronize, (CUstream stream), (stream))                            \
    BFC_BOTH_TWINS(X, cuStreamQuery, (CUstream stream), (stream))                                  \
    X(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes), (to, from, bytes))              \
    X(cuMemcpyDtoH_v2_ptds, (void *to, CUdeviceptr from, size_t bytes), (to, from, bytes))         \
    BFC_BOTH_TWINS(X, cuMemcpyDtoHAsync_v2,                                                        \
                   (void *to, CUdeviceptr from, size_t bytes, CUstream stream),                    \
                   (to, from, bytes, stream))                                                      \
    BFC_BOTH_TWINS(X, cuMemcpyHtoDAsync_v2,                                                        \
                   (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),              \
                   (to, from, bytes, stream))                                                      \
    BFC_BOTH_TWINS(X, cuMemcpyDtoDAsync_v2,                                                        \
                   (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),              \
                   (to, from, bytes, stream))                                                      \
    BFC_BOTH_TWINS(X, cuMemcpyAsync,                                                               \
                   (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),              \
                   (to, from, bytes, stream))                                                      \
    BFC_BOTH_TWINS(X, cuMemsetD8Async,                                                             \
                   (CUdeviceptr to, unsigned char value, size_t count, CUstream stream),           \
                   (to, value, count, stream))                                                     \
    BFC_BOTH_TWINS(X, cuMemsetD32Async,                                                            \
                   (CUdeviceptr to, unsigned value, size_t count, CUstream stream),                \
                   (to, value, count, stream))

/* If a program is compiled with a default stream for each thread, cuda.h defines these names as
 * macros for their _ptsz twins; here they mean the functions themselves. */
#undef cuStreamSynchronize
#undef cuStreamQuery
#undef cuMemcpyAsync
#undef cuMemsetD8Async
#undef cuMemsetD32Async

#endif
