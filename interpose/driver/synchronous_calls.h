/*
 * The synchronous copies and sets that may return before the device is done, unless SYNC_MEMOPS is
 * set for their memory (cuda.h, "API synchronization behavior"). Those to host memory always wait.
 *
 * A row stands for a call and for its twin NAME_ptds, which uses the calling thread's own default
 * stream: NAME, parameters, arguments, where it writes device memory, and where it reads such
 * memory (0: nowhere).
 */
#ifndef BFC_INTERPOSE_SYNCHRONOUS_CALLS_H
#define BFC_INTERPOSE_SYNCHRONOUS_CALLS_H

#include <cuda.h>

/* One side of a copy that a structure describes, src or dst. */
#define BFC_SIDE(copy, side)                                                                       \
    ((copy)->side##MemoryType == CU_MEMORYTYPE_DEVICE ||                                           \
             (copy)->side##MemoryType == CU_MEMORYTYPE_UNIFIED                                     \
         ? (copy)->side##Device                                                                    \
         : 0)

#define BFC_SYNCHRONOUS_CALLS(X)                                                                   \
    X(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes), to, from)     \
    X(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t bytes), (to, from, bytes), to, 0) \
    X(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes), to,    \
      from)                                                                                        \
    X(cuMemcpyDtoA_v2, (CUarray to, size_t at, CUdeviceptr from, size_t bytes),                    \
      (to, at, from, bytes), 0, from)                                                              \
    X(cuMemcpyAtoD_v2, (CUdeviceptr to, CUarray from, size_t at, size_t bytes),                    \
      (to, from, at, bytes), to, 0)                                                                \
    X(cuMemcpyPeer,                                                                                \
      (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,             \
       size_t bytes),                                                                              \
      (to, to_context, from, from_context, bytes), to, from)                                       \
    X(cuMemcpy2D_v2, (const CUDA_MEMCPY2D *copy), (copy), BFC_SIDE(copy, dst),                     \
      BFC_SIDE(copy, src))                                                                         \
    X(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D *copy), (copy), BFC_SIDE(copy, dst),            \
      BFC_SIDE(copy, src))                                                                         \
    X(cuMemcpy3D_v2, (const CUDA_MEMCPY3D *copy), (copy), BFC_SIDE(copy, dst),                     \
      BFC_SIDE(copy, src))                                                                         \
    X(cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER *copy), (copy), BFC_SIDE(copy, dst),               \
      BFC_SIDE(copy, src))                                                                         \
    X(cuMemsetD8_v2, (CUdeviceptr to, unsigned char value, size_t count), (to, value, count), to,  \
      0)                                                                                           \
    X(cuMemsetD16_v2, (CUdeviceptr to, unsigned short value, size_t count), (to, value, count),    \
      to, 0)                                                                                       \
    X(cuMemsetD32_v2, (CUdeviceptr to, unsigned value, size_t count), (to, value, count), to, 0)   \
    X(cuMemsetD2D8_v2,                                                                             \
      (CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height),            \
      (to, pitch, value, width, height), to, 0)                                                    \
    X(cuMemsetD2D16_v2,                                                                            \
      (CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height),           \
      (to, pitch, value, width, height), to, 0)                                                    \
    X(cuMemsetD2D32_v2,                                                                            \
      (CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height),                 \
      (to, pitch, value, width, height), to, 0)

/* With default streams for each thread the header turns these names into their twins. */
#undef cuMemcpy
#undef cuMemcpyPeer
#undef cuMemcpy3DPeer

#endif
