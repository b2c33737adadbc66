// Memory, copies and sets of the runtime API.
#include "sim/runtime/runtime.h"

#include <stdint.h>

static CUdeviceptr address(const void *pointer) {
    return (CUdeviceptr)(uintptr_t)pointer;
}

// A request for nothing succeeds without the driver.
static cudaError_t allocate(void **out, size_t size) {
    CUdeviceptr pointer = 0;
    if (out == NULL) {
        return cudaErrorInvalidValue;
    }
    if (size == 0) {
        *out = NULL;
        return cudaSuccess;
    }
    CUresult result = rt_driver.cuMemAlloc(&pointer, size);
    if (result == CUDA_SUCCESS) {
        *out = (void *)(uintptr_t)pointer;
    }
    return rt_code(result);
}

RT_CALL(cudaMalloc, (void **out, size_t size), allocate(out, size))
RT_CALL(cudaFree, (void *pointer), rt_code(rt_driver.cuMemFree(address(pointer))))
RT_CALL(cudaMemGetInfo, (size_t * free_bytes, size_t *total),
        rt_code(rt_driver.cuMemGetInfo(free_bytes, total)))

// ---- host memory ----

static cudaError_t allocate_host(void **out, size_t size, unsigned flags) {
    if (out == NULL) {
        return cudaErrorInvalidValue;
    }
    if (size == 0) {
        *out = NULL;
        return cudaSuccess;
    }
    return rt_code(rt_driver.cuMemHostAlloc(out, size, flags));
}

static cudaError_t free_host(void *memory) {
    return memory == NULL ? cudaSuccess : rt_code(rt_driver.cuMemFreeHost(memory));
}

RT_CALL(cudaMallocHost, (void **out, size_t size), allocate_host(out, size, 0))
RT_CALL(cudaHostAlloc, (void **out, size_t size, unsigned flags), allocate_host(out, size, flags))
RT_CALL(cudaFreeHost, (void *memory), free_host(memory))
RT_CALL(cudaHostRegister, (void *memory, size_t size, unsigned flags),
        rt_code(rt_driver.cuMemHostRegister(memory, size, flags)))
RT_CALL(cudaHostUnregister, (void *memory), rt_code(rt_driver.cuMemHostUnregister(memory)))
RT_CALL(cudaHostGetDevicePointer, (void **out, void *memory, unsigned flags),
        rt_code(rt_driver.cuMemHostGetDevicePointer((CUdeviceptr *)out, memory, flags)))
RT_CALL(cudaHostGetFlags, (unsigned *flags, void *memory),
        rt_code(rt_driver.cuMemHostGetFlags(flags, memory)))

// ---- copies ----

cudaError_t rt_copy(void *to, const void *from, size_t count, enum cudaMemcpyKind kind, int pt) {
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return rt_code(rt_driver.cuMemcpyHtoD[pt](address(to), from, count));
    case cudaMemcpyDeviceToHost:
        return rt_code(rt_driver.cuMemcpyDtoH[pt](to, address(from), count));
    case cudaMemcpyDeviceToDevice:
        return rt_code(rt_driver.cuMemcpyDtoD[pt](address(to), address(from), count));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return rt_code(rt_driver.cuMemcpy[pt](address(to), address(from), count));
    }
    return cudaErrorInvalidMemcpyDirection;
}

cudaError_t rt_copy_async(void *to, const void *from, size_t count, enum cudaMemcpyKind kind,
                          cudaStream_t stream, int pt) {
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return rt_code(rt_driver.cuMemcpyHtoDAsync[pt](address(to), from, count, stream));
    case cudaMemcpyDeviceToHost:
        return rt_code(rt_driver.cuMemcpyDtoHAsync[pt](to, address(from), count, stream));
    case cudaMemcpyDeviceToDevice:
        return rt_code(rt_driver.cuMemcpyDtoDAsync[pt](address(to), address(from), count, stream));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return rt_code(rt_driver.cuMemcpyAsync[pt](address(to), address(from), count, stream));
    }
    return cudaErrorInvalidMemcpyDirection;
}

RT_PAIR(cudaMemcpy, cudaMemcpy_ptds,
        (void *to, const void *from, size_t count, enum cudaMemcpyKind kind),
        rt_copy(to, from, count, kind, pt))
RT_PAIR(cudaMemcpyAsync, cudaMemcpyAsync_ptsz,
        (void *to, const void *from, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream),
        rt_copy_async(to, from, count, kind, stream, pt))

static CUDA_MEMCPY2D rows(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                          size_t width, size_t height) {
    return (CUDA_MEMCPY2D){.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .dstDevice = address(to),
                           .dstPitch = to_pitch,
                           .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .srcDevice = address(from),
                           .srcPitch = from_pitch,
                           .WidthInBytes = width,
                           .Height = height};
}

static cudaError_t copy_rows(CUDA_MEMCPY2D what, enum cudaMemcpyKind kind, int pt) {
    return kind > cudaMemcpyDefault ? cudaErrorInvalidMemcpyDirection
                                    : rt_code(rt_driver.cuMemcpy2DUnaligned[pt](&what));
}

static cudaError_t copy_rows_async(CUDA_MEMCPY2D what, enum cudaMemcpyKind kind,
                                   cudaStream_t stream, int pt) {
    return kind > cudaMemcpyDefault ? cudaErrorInvalidMemcpyDirection
                                    : rt_code(rt_driver.cuMemcpy2DAsync[pt](&what, stream));
}

RT_PAIR(cudaMemcpy2D, cudaMemcpy2D_ptds,
        (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
         size_t height, enum cudaMemcpyKind kind),
        copy_rows(rows(to, to_pitch, from, from_pitch, width, height), kind, pt))
RT_PAIR(cudaMemcpy2DAsync, cudaMemcpy2DAsync_ptsz,
        (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
         size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
        copy_rows_async(rows(to, to_pitch, from, from_pitch, width, height), kind, stream, pt))

// ---- sets ----

RT_PAIR(cudaMemset, cudaMemset_ptds, (void *to, int value, size_t count),
        rt_code(rt_driver.cuMemsetD8[pt](address(to), (unsigned char)value, count)))
RT_PAIR(cudaMemsetAsync, cudaMemsetAsync_ptsz,
        (void *to, int value, size_t count, cudaStream_t stream),
        rt_code(rt_driver.cuMemsetD8Async[pt](address(to), (unsigned char)value, count, stream)))
RT_PAIR(cudaMemset2D, cudaMemset2D_ptds,
        (void *to, size_t pitch, int value, size_t width, size_t height),
        rt_code(rt_driver.cuMemsetD2D8[pt](address(to), pitch, (unsigned char)value, width,
                                           height)))
RT_PAIR(cudaMemset2DAsync, cudaMemset2DAsync_ptsz,
        (void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
        rt_code(rt_driver.cuMemsetD2D8Async[pt](address(to), pitch, (unsigned char)value, width,
                                                height, stream)))

// Slices without a gap between them are set as the rows of one.
static cudaError_t set_slices(struct cudaPitchedPtr to, unsigned char value,
                              struct cudaExtent extent, int pt) {
    bool together = extent.height == to.ysize;
    size_t rows = together ? extent.height * extent.depth : extent.height;
    CUresult result = CUDA_SUCCESS;
    for (size_t z = 0; z < (together ? 1 : extent.depth) && result == CUDA_SUCCESS; z++) {
        result = rt_driver.cuMemsetD2D8[pt](address(to.ptr) + z * to.pitch * to.ysize, to.pitch,
                                            value, extent.width, rows);
    }
    return rt_code(result);
}

static cudaError_t set_slices_async(struct cudaPitchedPtr to, unsigned char value,
                                    struct cudaExtent extent, cudaStream_t stream, int pt) {
    bool together = extent.height == to.ysize;
    size_t rows = together ? extent.height * extent.depth : extent.height;
    CUresult result = CUDA_SUCCESS;
    for (size_t z = 0; z < (together ? 1 : extent.depth) && result == CUDA_SUCCESS; z++) {
        result = rt_driver.cuMemsetD2D8Async[pt](address(to.ptr) + z * to.pitch * to.ysize,
                                                 to.pitch, value, extent.width, rows, stream);
    }
    return rt_code(result);
}

static bool is_empty(struct cudaExtent extent) {
    return extent.width == 0 || extent.height == 0 || extent.depth == 0;
}

RT_PAIR(cudaMemset3D, cudaMemset3D_ptds,
        (struct cudaPitchedPtr to, int value, struct cudaExtent extent),
        is_empty(extent) ? cudaSuccess : set_slices(to, (unsigned char)value, extent, pt))
RT_PAIR(cudaMemset3DAsync, cudaMemset3DAsync_ptsz,
        (struct cudaPitchedPtr to, int value, struct cudaExtent extent, cudaStream_t stream),
        is_empty(extent) ? cudaSuccess
                         : set_slices_async(to, (unsigned char)value, extent, stream, pt))

// ---- pointers ----

static enum cudaMemoryType kind_of(unsigned memory_type, bool managed) {
    if (managed) {
        return cudaMemoryTypeManaged;
    }
    return memory_type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
           : memory_type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
                                               : cudaMemoryTypeUnregistered;
}

static cudaError_t attributes(struct cudaPointerAttributes *out, const void *pointer) {
    unsigned type = 0;
    int device = -2;
    bool managed = false;
    CUdeviceptr on_device = 0;
    void *on_host = NULL;
    CUpointer_attribute which[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void *into[] = {&type, &device, &managed, &on_device, &on_host};
    if (out == NULL) {
        return cudaErrorInvalidValue;
    }
    CUresult result = rt_driver.cuPointerGetAttributes(5, which, into, address(pointer));
    if (result != CUDA_SUCCESS) {
        return rt_code(result);
    }
    out->type = kind_of(type, managed);
    out->device = out->type == cudaMemoryTypeUnregistered ? -1 : device;
    out->devicePointer = (void *)(uintptr_t)on_device;
    out->hostPointer =
        out->type == cudaMemoryTypeUnregistered ? (void *)(uintptr_t)pointer : on_host;
    return cudaSuccess;
}

RT_CALL(cudaPointerGetAttributes, (struct cudaPointerAttributes * out, const void *pointer),
        attributes(out, pointer))
