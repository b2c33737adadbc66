// Device memory: cuMemAlloc and its kin.
//
// Freeing waits for the owning context, all of its streams included, before anything is unmapped;
// the second of two frees fails at once. Guarded by the lock.
#include "sim/base/limits.h"
#include "sim/border/border.h"
#include "sim/calls/memory/host.h"
#include "sim/calls/memory/pool.h"
#include "sim/device/contexts.h"
#include "sim/device/device.h"
#include "sim/device/share.h"
#include "sim/device/thread.h"
#include "sim/memory/allocate.h"
#include "sim/memory/ranges.h"
#include "sim/order/wait.h"

#include <limits.h>

static CUresult allocate(CUdeviceptr *out, size_t size) {
    struct sim_allocation *allocation = NULL;
    if (out == NULL || size == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = sim_allocate(sim_current(), size, SIM_PLAIN, &allocation);
    if (result == CUDA_SUCCESS) {
        *out = allocation->start;
    }
    return result;
}

// The interface of before CUDA 3.2 has 32-bit pointers. What they do not reach goes back at once.
static CUresult narrow_down(CUresult result, CUdeviceptr wide, CUdeviceptr_v1 *out) {
    if (result != CUDA_SUCCESS) {
        return result;
    }
    struct sim_allocation *allocation = sim_allocation_at(wide);
    if (wide + allocation->taken - 1 > UINT_MAX) {
        sim_allocation_end(allocation);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = (CUdeviceptr_v1)wide;
    return CUDA_SUCCESS;
}

static CUresult allocate_32(CUdeviceptr_v1 *out, unsigned size) {
    CUdeviceptr wide = 0;
    CUresult result = out == NULL ? CUDA_ERROR_INVALID_VALUE : allocate(&wide, size);
    return narrow_down(result, wide, out);
}

SIM_CALL(cuMemAlloc, SIM_CURRENT | SIM_UNSAFE, (CUdeviceptr_v1 * out, unsigned size),
         allocate_32(out, size))
SIM_SIZED(cuMemAlloc_v2, SIM_CURRENT | SIM_UNSAFE, size, (CUdeviceptr * out, size_t size),
          allocate(out, size))

// Stream-ordered memory: the program says that all use of it is over, so nothing is waited for.
static CUresult release_unordered(struct sim_allocation *allocation) {
    CUresult result = sim_context_error(allocation->context);
    if (result == CUDA_SUCCESS && allocation->kind == SIM_ASYNC) {
        sim_pool_release(allocation);
    }
    return result;
}

// By pointer: whatever is current. The error of the owning context's earlier work is the answer.
static CUresult release(CUdeviceptr pointer) {
    if (pointer == 0) {
        return sim_current() != NULL ? sim_context_error(sim_current()) : CUDA_SUCCESS;
    }
    if (sim_host_at(pointer) != NULL) {
        return sim_managed_free(pointer);
    }
    struct sim_allocation *allocation = sim_allocation_at(pointer);
    if (allocation == NULL || allocation->start != pointer ||
        (allocation->kind != SIM_PLAIN && allocation->kind != SIM_ASYNC &&
         allocation->kind != SIM_GRAPH_MEMORY)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (allocation->kind != SIM_PLAIN) {
        return release_unordered(allocation);
    }
    struct CUctx_st *context = allocation->context;
    unsigned long long life = context->id;
    CUresult result = sim_context_error(context);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    allocation->freed = true;
    result = sim_context_finish(context);
    // Its context may have ended meanwhile, and taken the allocation with it.
    if (context->alive && context->id == life) {
        sim_allocation_end(allocation);
    }
    return result;
}

SIM_CALL(cuMemFree, SIM_READY | SIM_UNSAFE, (CUdeviceptr_v1 pointer), release(pointer))
SIM_CALL(cuMemFree_v2, SIM_READY | SIM_UNSAFE, (CUdeviceptr pointer), release(pointer))

// Rows start at multiples of 512 bytes, as on an H100; the formula is not published.
static CUresult allocate_rows(CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
                              unsigned element) {
    size_t row = 0, bytes = 0;
    if (out == NULL || pitch == NULL || width == 0 || height == 0 ||
        (element != 4 && element != 8 && element != 16)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (__builtin_add_overflow(width, SIM_GRAIN - 1, &row)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    row = row / SIM_GRAIN * SIM_GRAIN;
    if (__builtin_mul_overflow(row, height, &bytes)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = allocate(out, bytes);
    if (result == CUDA_SUCCESS) {
        *pitch = row;
    }
    return result;
}

SIM_CALL(cuMemAllocPitch_v2, SIM_CURRENT | SIM_UNSAFE,
         (CUdeviceptr * out, size_t *pitch, size_t width, size_t height, unsigned element),
         allocate_rows(out, pitch, width, height, element))

static CUresult allocate_rows_32(CUdeviceptr_v1 *out, unsigned *pitch, unsigned width,
                                 unsigned height, unsigned element) {
    CUdeviceptr wide = 0;
    size_t wide_pitch = 0;
    bool bad = out == NULL || pitch == NULL;
    CUresult result =
        bad ? CUDA_ERROR_INVALID_VALUE : allocate_rows(&wide, &wide_pitch, width, height, element);
    result = narrow_down(result, wide, out);
    if (result == CUDA_SUCCESS) {
        *pitch = (unsigned)wide_pitch;
    }
    return result;
}

SIM_CALL(cuMemAllocPitch, SIM_CURRENT | SIM_UNSAFE,
         (CUdeviceptr_v1 * out, unsigned *pitch, unsigned width, unsigned height, unsigned element),
         allocate_rows_32(out, pitch, width, height, element))

static CUresult info(size_t *free_bytes, size_t *total) {
    const struct sim_device *device = sim_current()->device;
    if (free_bytes != NULL) {
        size_t used = device->used + sim_share_others(device);
        *free_bytes = used < device->limit ? (device->limit - used) * SIM_PAGE : 0;
    }
    if (total != NULL) {
        *total = device->limit * SIM_PAGE;
    }
    return CUDA_SUCCESS;
}

static unsigned narrow(size_t bytes) {
    return bytes > UINT_MAX ? UINT_MAX : (unsigned)bytes;
}

static CUresult info_32(unsigned *free_bytes, unsigned *total) {
    size_t wide_free = 0, wide_total = 0;
    info(&wide_free, &wide_total);
    if (free_bytes != NULL) {
        *free_bytes = narrow(wide_free);
    }
    if (total != NULL) {
        *total = narrow(wide_total);
    }
    return CUDA_SUCCESS;
}

SIM_CALL(cuMemGetInfo, SIM_CURRENT, (unsigned *free_bytes, unsigned *total),
         info_32(free_bytes, total))
SIM_CALL(cuMemGetInfo_v2, SIM_CURRENT, (size_t * free_bytes, size_t *total),
         info(free_bytes, total))

static CUresult range_of(CUdeviceptr *start, size_t *size, CUdeviceptr pointer) {
    const struct sim_allocation *allocation = sim_allocation_at(pointer);
    const struct sim_host_range *host = allocation == NULL ? sim_host_at(pointer) : NULL;
    if (allocation == NULL && host == NULL) {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (start != NULL) {
        *start = allocation != NULL ? allocation->start : host->start;
    }
    if (size != NULL) {
        *size = allocation != NULL ? allocation->size : host->size;
    }
    return CUDA_SUCCESS;
}

SIM_CALL(cuMemGetAddressRange_v2, SIM_CURRENT,
         (CUdeviceptr * start, size_t *size, CUdeviceptr pointer), range_of(start, size, pointer))

static CUresult range_of_32(CUdeviceptr_v1 *start, unsigned *size, CUdeviceptr_v1 pointer) {
    CUdeviceptr wide_start = 0;
    size_t wide_size = 0;
    CUresult result = range_of(&wide_start, &wide_size, pointer);
    if (result == CUDA_SUCCESS && start != NULL) {
        *start = (CUdeviceptr_v1)wide_start;
    }
    if (result == CUDA_SUCCESS && size != NULL) {
        *size = narrow(wide_size);
    }
    return result;
}

SIM_CALL(cuMemGetAddressRange, SIM_CURRENT,
         (CUdeviceptr_v1 * start, unsigned *size, CUdeviceptr_v1 pointer),
         range_of_32(start, size, pointer))
