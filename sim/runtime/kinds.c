// The other kinds of memory of the runtime API: pitched, 3D, arrays, managed, stream-ordered,
// pools, peers, IPC.
#include "sim/runtime/runtime.h"

#include <stdint.h>
#include <string.h>

static CUdeviceptr address(const void *pointer) {
    return (CUdeviceptr)(uintptr_t)pointer;
}

// ---- pitched ----

static cudaError_t allocate_rows(void **out, size_t *pitch, size_t width, size_t height) {
    CUdeviceptr pointer = 0;
    if (out == NULL || pitch == NULL) {
        return cudaErrorInvalidValue;
    }
    if (width == 0 || height == 0) {
        *out = NULL;
        *pitch = 0;
        return cudaSuccess;
    }
    CUresult result = rt_driver.cuMemAllocPitch(&pointer, pitch, width, height, 4);
    if (result == CUDA_SUCCESS) {
        *out = (void *)(uintptr_t)pointer;
    }
    return rt_code(result);
}

static cudaError_t allocate_3d(struct cudaPitchedPtr *out, struct cudaExtent extent) {
    size_t rows = 0;
    if (out == NULL || __builtin_mul_overflow(extent.height, extent.depth, &rows)) {
        return out == NULL ? cudaErrorInvalidValue : cudaErrorMemoryAllocation;
    }
    out->xsize = extent.width;
    out->ysize = extent.height;
    return allocate_rows(&out->ptr, &out->pitch, extent.width, rows);
}

RT_CALL(cudaMallocPitch, (void **out, size_t *pitch, size_t width, size_t height),
        allocate_rows(out, pitch, width, height))
RT_CALL(cudaMalloc3D, (struct cudaPitchedPtr * out, struct cudaExtent extent),
        allocate_3d(out, extent))

// ---- arrays ----

bool rt_format(const struct cudaChannelFormatDesc *shape, CUarray_format *format,
               unsigned *channels) {
    *channels = (shape->x > 0 ? 1u : 0u) + (shape->y > 0 ? 1u : 0u) + (shape->z > 0 ? 1u : 0u) +
                (shape->w > 0 ? 1u : 0u);
    switch ((int)shape->f) {
    case cudaChannelFormatKindUnsigned:
        *format = shape->x == 8    ? CU_AD_FORMAT_UNSIGNED_INT8
                  : shape->x == 16 ? CU_AD_FORMAT_UNSIGNED_INT16
                                   : CU_AD_FORMAT_UNSIGNED_INT32;
        return true;
    case cudaChannelFormatKindSigned:
        *format = shape->x == 8    ? CU_AD_FORMAT_SIGNED_INT8
                  : shape->x == 16 ? CU_AD_FORMAT_SIGNED_INT16
                                   : CU_AD_FORMAT_SIGNED_INT32;
        return true;
    case cudaChannelFormatKindFloat:
        *format = shape->x == 16 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
        return true;
    default:
        return false;
    }
}

static cudaError_t allocate_array(cudaArray_t *out, const struct cudaChannelFormatDesc *shape,
                                  struct cudaExtent extent, unsigned flags) {
    CUDA_ARRAY3D_DESCRIPTOR full = {
        .Width = extent.width, .Height = extent.height, .Depth = extent.depth, .Flags = flags};
    if (out == NULL || shape == NULL || !rt_format(shape, &full.Format, &full.NumChannels)) {
        return cudaErrorInvalidValue;
    }
    return rt_code(rt_driver.cuArray3DCreate((CUarray *)(void *)out, &full));
}

static struct cudaExtent flat(size_t width, size_t height) {
    return (struct cudaExtent){width, height, 0};
}

RT_CALL(cudaMallocArray,
        (cudaArray_t * out, const struct cudaChannelFormatDesc *shape, size_t width, size_t height,
         unsigned flags),
        allocate_array(out, shape, flat(width, height), flags))
RT_CALL(cudaMalloc3DArray,
        (cudaArray_t * out, const struct cudaChannelFormatDesc *shape, struct cudaExtent extent,
         unsigned flags),
        allocate_array(out, shape, extent, flags))
RT_CALL(cudaFreeArray, (cudaArray_t array),
        array == NULL ? cudaSuccess : rt_code(rt_driver.cuArrayDestroy((CUarray)(void *)array)))

struct cudaChannelFormatDesc CUDARTAPI cudaCreateChannelDesc(int x, int y, int z, int w,
                                                             enum cudaChannelFormatKind kind) {
    return (struct cudaChannelFormatDesc){x, y, z, w, kind};
}

static size_t element_of(cudaArray_const_t array) {
    CUDA_ARRAY3D_DESCRIPTOR shape;
    if (rt_driver.cuArray3DGetDescriptor(&shape, (CUarray)(uintptr_t)array) != CUDA_SUCCESS) {
        return 1;
    }
    bool byte =
        shape.Format == CU_AD_FORMAT_UNSIGNED_INT8 || shape.Format == CU_AD_FORMAT_SIGNED_INT8;
    bool half = shape.Format == CU_AD_FORMAT_UNSIGNED_INT16 ||
                shape.Format == CU_AD_FORMAT_SIGNED_INT16 || shape.Format == CU_AD_FORMAT_HALF;
    return shape.NumChannels * (byte ? 1u : half ? 2u : 4u);
}

// Widths and positions are in elements as soon as an array takes part.
static CUDA_MEMCPY3D copy_of(const struct cudaMemcpy3DParms *p) {
    size_t element = p->dstArray != NULL   ? element_of(p->dstArray)
                     : p->srcArray != NULL ? element_of(p->srcArray)
                                           : 1;
    return (CUDA_MEMCPY3D){
        .srcMemoryType = p->srcArray != NULL ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED,
        .srcArray = (CUarray)(void *)p->srcArray,
        .srcDevice = address(p->srcPtr.ptr),
        .srcPitch = p->srcPtr.pitch,
        .srcHeight = p->srcPtr.ysize,
        .srcXInBytes = p->srcPos.x * (p->srcArray != NULL ? element : 1),
        .srcY = p->srcPos.y,
        .srcZ = p->srcPos.z,
        .dstMemoryType = p->dstArray != NULL ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED,
        .dstArray = (CUarray)(void *)p->dstArray,
        .dstDevice = address(p->dstPtr.ptr),
        .dstPitch = p->dstPtr.pitch,
        .dstHeight = p->dstPtr.ysize,
        .dstXInBytes = p->dstPos.x * (p->dstArray != NULL ? element : 1),
        .dstY = p->dstPos.y,
        .dstZ = p->dstPos.z,
        .WidthInBytes = p->extent.width * element,
        .Height = p->extent.height,
        .Depth = p->extent.depth,
    };
}

static cudaError_t copy_3d(const struct cudaMemcpy3DParms *p, int pt) {
    if (p == NULL) {
        return cudaErrorInvalidValue;
    }
    CUDA_MEMCPY3D copy = copy_of(p);
    return rt_code(rt_driver.cuMemcpy3D[pt](&copy));
}

static cudaError_t copy_3d_async(const struct cudaMemcpy3DParms *p, cudaStream_t stream, int pt) {
    if (p == NULL) {
        return cudaErrorInvalidValue;
    }
    CUDA_MEMCPY3D copy = copy_of(p);
    return rt_code(rt_driver.cuMemcpy3DAsync[pt](&copy, stream));
}

RT_PAIR(cudaMemcpy3D, cudaMemcpy3D_ptds, (const struct cudaMemcpy3DParms *p), copy_3d(p, pt))
RT_PAIR(cudaMemcpy3DAsync, cudaMemcpy3DAsync_ptsz,
        (const struct cudaMemcpy3DParms *p, cudaStream_t stream), copy_3d_async(p, stream, pt))

// Rows between memory and an array; positions and widths are in bytes.
static CUDA_MEMCPY3D rows_to(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch,
                             size_t width, size_t height) {
    return (CUDA_MEMCPY3D){.dstMemoryType = CU_MEMORYTYPE_ARRAY,
                           .dstArray = (CUarray)(void *)to,
                           .dstXInBytes = x,
                           .dstY = y,
                           .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .srcDevice = address(from),
                           .srcPitch = pitch,
                           .WidthInBytes = width,
                           .Height = height,
                           .Depth = 1};
}

static CUDA_MEMCPY3D rows_from(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
                               size_t width, size_t height) {
    return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                           .srcArray = (CUarray)(uintptr_t)from,
                           .srcXInBytes = x,
                           .srcY = y,
                           .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .dstDevice = address(to),
                           .dstPitch = pitch,
                           .WidthInBytes = width,
                           .Height = height,
                           .Depth = 1};
}

static cudaError_t copy_rows(CUDA_MEMCPY3D what, enum cudaMemcpyKind kind, int pt) {
    return kind > cudaMemcpyDefault ? cudaErrorInvalidMemcpyDirection
                                    : rt_code(rt_driver.cuMemcpy3D[pt](&what));
}

static cudaError_t copy_rows_async(CUDA_MEMCPY3D what, enum cudaMemcpyKind kind,
                                   cudaStream_t stream, int pt) {
    return kind > cudaMemcpyDefault ? cudaErrorInvalidMemcpyDirection
                                    : rt_code(rt_driver.cuMemcpy3DAsync[pt](&what, stream));
}

RT_PAIR(cudaMemcpy2DToArray, cudaMemcpy2DToArray_ptds,
        (cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width,
         size_t height, enum cudaMemcpyKind kind),
        copy_rows(rows_to(to, x, y, from, pitch, width, height), kind, pt))
RT_PAIR(cudaMemcpy2DToArrayAsync, cudaMemcpy2DToArrayAsync_ptsz,
        (cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width,
         size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
        copy_rows_async(rows_to(to, x, y, from, pitch, width, height), kind, stream, pt))
RT_PAIR(cudaMemcpy2DFromArray, cudaMemcpy2DFromArray_ptds,
        (void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width,
         size_t height, enum cudaMemcpyKind kind),
        copy_rows(rows_from(to, pitch, from, x, y, width, height), kind, pt))
RT_PAIR(cudaMemcpy2DFromArrayAsync, cudaMemcpy2DFromArrayAsync_ptsz,
        (void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width,
         size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
        copy_rows_async(rows_from(to, pitch, from, x, y, width, height), kind, stream, pt))

// ---- managed ----

static cudaError_t allocate_managed(void **out, size_t size, unsigned flags) {
    CUdeviceptr pointer = 0;
    if (out == NULL) {
        return cudaErrorInvalidValue;
    }
    CUresult result = rt_driver.cuMemAllocManaged(&pointer, size, flags);
    if (result == CUDA_SUCCESS) {
        *out = (void *)(uintptr_t)pointer;
    }
    return rt_code(result);
}

static CUmemLocation place_of(struct cudaMemLocation location) {
    return (CUmemLocation){.type = (CUmemLocationType)location.type, .id = location.id};
}

RT_CALL(cudaMallocManaged, (void **out, size_t size, unsigned flags),
        allocate_managed(out, size, flags))
RT_CALL(cudaMemAdvise,
        (const void *pointer, size_t size, enum cudaMemoryAdvise advice,
         struct cudaMemLocation location),
        rt_code(rt_driver.cuMemAdvise(address(pointer), size, (CUmem_advise)advice,
                                      place_of(location))))
RT_PAIR(cudaMemPrefetchAsync, cudaMemPrefetchAsync_ptsz,
        (const void *pointer, size_t size, struct cudaMemLocation location, unsigned flags,
         cudaStream_t stream),
        rt_code(rt_driver.cuMemPrefetchAsync[pt](address(pointer), size, place_of(location), flags,
                                                 stream)))

// ---- stream-ordered ----

static cudaError_t allocate_async(void **out, size_t size, cudaMemPool_t pool, cudaStream_t stream,
                                  int pt) {
    CUdeviceptr pointer = 0;
    if (out == NULL) {
        return cudaErrorInvalidValue;
    }
    if (size == 0) {
        *out = NULL;
        return cudaSuccess;
    }
    CUresult result = pool != NULL
                          ? rt_driver.cuMemAllocFromPoolAsync[pt](&pointer, size, pool, stream)
                          : rt_driver.cuMemAllocAsync[pt](&pointer, size, stream);
    if (result == CUDA_SUCCESS) {
        *out = (void *)(uintptr_t)pointer;
    }
    return rt_code(result);
}

static cudaError_t free_async(void *pointer, cudaStream_t stream, int pt) {
    return pointer == NULL ? cudaSuccess
                           : rt_code(rt_driver.cuMemFreeAsync[pt](address(pointer), stream));
}

RT_PAIR(cudaMallocAsync, cudaMallocAsync_ptsz, (void **out, size_t size, cudaStream_t stream),
        allocate_async(out, size, NULL, stream, pt))
RT_PAIR(cudaMallocFromPoolAsync, cudaMallocFromPoolAsync_ptsz,
        (void **out, size_t size, cudaMemPool_t pool, cudaStream_t stream),
        pool == NULL ? cudaErrorInvalidValue : allocate_async(out, size, pool, stream, pt))
RT_PAIR(cudaFreeAsync, cudaFreeAsync_ptsz, (void *pointer, cudaStream_t stream),
        free_async(pointer, stream, pt))

// The runtime's and the driver's structures of pools have the same layout.
_Static_assert(sizeof(struct cudaMemPoolProps) == sizeof(CUmemPoolProps), "the same layout");
_Static_assert(sizeof(struct cudaMemAccessDesc) == sizeof(CUmemAccessDesc), "the same layout");

RT_PLAIN(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device),
         rt_code(rt_driver.cuDeviceGetDefaultMemPool(pool, device)))
RT_PLAIN(cudaDeviceGetMemPool, (cudaMemPool_t * pool, int device),
         rt_code(rt_driver.cuDeviceGetMemPool(pool, device)))
RT_PLAIN(cudaDeviceSetMemPool, (int device, cudaMemPool_t pool),
         rt_code(rt_driver.cuDeviceSetMemPool(device, pool)))
RT_PLAIN(cudaMemPoolCreate, (cudaMemPool_t * pool, const struct cudaMemPoolProps *wanted),
         rt_code(rt_driver.cuMemPoolCreate(pool, (const CUmemPoolProps *)(const void *)wanted)))
RT_PLAIN(cudaMemPoolDestroy, (cudaMemPool_t pool), rt_code(rt_driver.cuMemPoolDestroy(pool)))
RT_PLAIN(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t keep),
         rt_code(rt_driver.cuMemPoolTrimTo(pool, keep)))
RT_PLAIN(cudaMemPoolGetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr which, void *value),
         rt_code(rt_driver.cuMemPoolGetAttribute(pool, (CUmemPool_attribute)which, value)))
RT_PLAIN(cudaMemPoolSetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr which, void *value),
         rt_code(rt_driver.cuMemPoolSetAttribute(pool, (CUmemPool_attribute)which, value)))
RT_PLAIN(cudaMemPoolSetAccess,
         (cudaMemPool_t pool, const struct cudaMemAccessDesc *access, size_t count),
         rt_code(rt_driver.cuMemPoolSetAccess(pool, (const CUmemAccessDesc *)(const void *)access,
                                              count)))

// ---- peers ----

static cudaError_t peer(int device, bool enable, unsigned flags) {
    CUresult result = CUDA_SUCCESS;
    CUcontext context = rt_primary(device, &result);
    if (result == CUDA_SUCCESS) {
        result = enable ? rt_driver.cuCtxEnablePeerAccess(context, flags)
                        : rt_driver.cuCtxDisablePeerAccess(context);
    }
    return rt_code(result);
}

static cudaError_t copy_peer(void *to, int to_device, const void *from, int from_device,
                             size_t count, cudaStream_t stream, bool wait) {
    CUresult result = CUDA_SUCCESS, other = CUDA_SUCCESS;
    CUcontext to_context = rt_primary(to_device, &result);
    CUcontext from_context = rt_primary(from_device, &other);
    if (result != CUDA_SUCCESS || other != CUDA_SUCCESS) {
        return rt_code(result != CUDA_SUCCESS ? result : other);
    }
    return rt_code(wait ? rt_driver.cuMemcpyPeer[0](address(to), to_context, address(from),
                                                    from_context, count)
                        : rt_driver.cuMemcpyPeerAsync[0](address(to), to_context, address(from),
                                                         from_context, count, stream));
}

RT_PLAIN(cudaDeviceCanAccessPeer, (int *can, int device, int other),
         rt_code(rt_driver.cuDeviceCanAccessPeer(can, device, other)))
RT_CALL(cudaDeviceEnablePeerAccess, (int device, unsigned flags), peer(device, true, flags))
RT_CALL(cudaDeviceDisablePeerAccess, (int device), peer(device, false, 0))
RT_CALL(cudaMemcpyPeer, (void *to, int to_device, const void *from, int from_device, size_t count),
        copy_peer(to, to_device, from, from_device, count, NULL, true))
RT_CALL(cudaMemcpyPeerAsync,
        (void *to, int to_device, const void *from, int from_device, size_t count,
         cudaStream_t stream),
        copy_peer(to, to_device, from, from_device, count, stream, false))

// ---- IPC ----

static cudaError_t export(cudaIpcMemHandle_t *out, const void *pointer) {
    CUipcMemHandle handle;
    if (out == NULL) {
        return cudaErrorInvalidValue;
    }
    CUresult result = rt_driver.cuIpcGetMemHandle(&handle, address(pointer));
    if (result == CUDA_SUCCESS) {
        memcpy(out, &handle, sizeof *out);
    }
    return rt_code(result);
}

static cudaError_t import(void **out, const cudaIpcMemHandle_t *token, unsigned flags) {
    CUipcMemHandle handle;
    CUdeviceptr pointer = 0;
    if (out == NULL) {
        return cudaErrorInvalidValue;
    }
    memcpy(&handle, token, sizeof handle);
    CUresult result = rt_driver.cuIpcOpenMemHandle(&pointer, handle, flags);
    if (result == CUDA_SUCCESS) {
        *out = (void *)(uintptr_t)pointer;
    }
    return rt_code(result);
}

RT_CALL(cudaIpcGetMemHandle, (cudaIpcMemHandle_t * handle, void *pointer), export(handle, pointer))
RT_CALL(cudaIpcOpenMemHandle, (void **out, cudaIpcMemHandle_t handle, unsigned flags),
        import(out, &handle, flags))
static cudaError_t export_event(cudaIpcEventHandle_t *out, cudaEvent_t event) {
    CUipcEventHandle handle;
    if (out == NULL) {
        return cudaErrorInvalidValue;
    }
    CUresult result = rt_driver.cuIpcGetEventHandle(&handle, event);
    if (result == CUDA_SUCCESS) {
        memcpy(out, &handle, sizeof *out);
    }
    return rt_code(result);
}

static cudaError_t import_event(cudaEvent_t *out, const cudaIpcEventHandle_t *token) {
    CUipcEventHandle handle;
    memcpy(&handle, token, sizeof handle);
    return rt_code(rt_driver.cuIpcOpenEventHandle(out, handle));
}

RT_CALL(cudaIpcGetEventHandle, (cudaIpcEventHandle_t * handle, cudaEvent_t event),
        export_event(handle, event))
RT_CALL(cudaIpcOpenEventHandle, (cudaEvent_t * event, cudaIpcEventHandle_t handle),
        import_event(event, &handle))
RT_CALL(cudaIpcCloseMemHandle, (void *pointer),
        rt_code(rt_driver.cuIpcCloseMemHandle(address(pointer))))
