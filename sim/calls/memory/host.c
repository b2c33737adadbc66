// Host memory that the device may reach: pinned by cuMemAllocHost and cuMemHostAlloc, or
// registered. Its device address is its host address. Guarded by the lock.
#include "sim/calls/memory/host.h"

#include "sim/base/ids.h"
#include "sim/base/limits.h"
#include "sim/base/options.h"
#include "sim/base/work.h"
#include "sim/border/border.h"
#include "sim/device/context.h"
#include "sim/device/thread.h"
#include "sim/memory/ranges.h"
#include "sim/order/meant.h"
#include "sim/order/stream.h"
#include "sim/order/wait.h"

#include <stdlib.h>
#include <string.h>

static CUresult allocate(void **out, size_t bytes, unsigned flags) {
    const unsigned known =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (out == NULL || bytes == 0 || (flags & ~known) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    size_t whole = (bytes + 4095) & ~(size_t)4095;
    void *memory = whole < bytes ? NULL : aligned_alloc(4096, whole);
    struct sim_host_range range = {.start = (uintptr_t)memory,
                                   .size = bytes,
                                   .flags = flags | CU_MEMHOSTALLOC_DEVICEMAP,
                                   .buffer_id = sim_next_buffer_id(),
                                   .context = sim_current()};
    if (memory == NULL || !sim_host_add(range)) {
        free(memory);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = memory;
    return CUDA_SUCCESS;
}

SIM_CALL(cuMemAllocHost, SIM_CURRENT | SIM_UNSAFE, (void **out, unsigned bytes),
         allocate(out, bytes, 0))
SIM_CALL(cuMemAllocHost_v2, SIM_CURRENT | SIM_UNSAFE, (void **out, size_t bytes),
         allocate(out, bytes, 0))
SIM_CALL(cuMemHostAlloc, SIM_CURRENT | SIM_UNSAFE, (void **out, size_t bytes, unsigned flags),
         allocate(out, bytes, flags))

enum { STALE_MOST = 256 << 10 }; // so that a free costs no more than that

// Waits, as cuMemFree does, for the context that it was allocated in, unless SIM_HOST_FREE_WAITS=0.
// Late readers find other bytes, or fault.
static CUresult release(void *memory) {
    struct sim_host_range *range = sim_host_at((uintptr_t)memory);
    if (range == NULL || range->registered || range->start != (uintptr_t)memory) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct CUctx_st *context = range->context;
    bool waits = context->alive && (range->managed || sim_options.host_free_waits);
    size_t size = range->size;
    sim_host_remove(range);
    CUresult result = waits ? sim_context_finish(context) : CUDA_SUCCESS;
    memset(memory, SIM_STALE, size < STALE_MOST ? size : STALE_MOST);
    free(memory);
    return result;
}

static CUresult release_pinned(void *memory) {
    const struct sim_host_range *range = sim_host_at((uintptr_t)memory);
    return range != NULL && range->managed ? CUDA_ERROR_INVALID_VALUE : release(memory);
}

SIM_CALL(cuMemFreeHost, SIM_READY | SIM_UNSAFE, (void *memory), release_pinned(memory))

// ---- managed memory: the host's, which kernels and copies reach as well ----

static CUresult allocate_managed(CUdeviceptr *out, size_t bytes, unsigned flags) {
    void *memory = NULL;
    if (out == NULL || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = allocate(&memory, bytes, 0);
    if (result == CUDA_SUCCESS) {
        sim_host_at((uintptr_t)memory)->managed = true;
        *out = (uintptr_t)memory;
    }
    return result;
}

SIM_CALL(cuMemAllocManaged, SIM_CURRENT | SIM_UNSAFE,
         (CUdeviceptr * out, size_t bytes, unsigned flags), allocate_managed(out, bytes, flags))

CUresult sim_managed_free(CUdeviceptr pointer) {
    const struct sim_host_range *range = sim_host_at(pointer);
    return range->managed ? release((void *)(uintptr_t)pointer) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult know_managed(CUdeviceptr pointer) {
    const struct sim_host_range *range = sim_host_at(pointer);
    return range != NULL && range->managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Where managed memory lies has no effect here, so advice is taken and does nothing; a prefetch is
// work of its stream that does nothing.
static CUresult run_prefetch(struct sim_work *work) {
    (void)work;
    return CUDA_SUCCESS;
}

static void drop_prefetch(struct sim_work *work) {
    free(work);
}

static const struct sim_work_type prefetch_type = {.run = run_prefetch, .drop = drop_prefetch};

static CUresult prefetch(CUdeviceptr pointer, CUstream handle, bool per_thread) {
    CUresult result = know_managed(pointer);
    struct CUstream_st *stream =
        result == CUDA_SUCCESS ? sim_stream_of(handle, per_thread, &result) : NULL;
    if (stream == NULL) {
        return result;
    }
    struct sim_work *work = calloc(1, sizeof *work);
    if (work == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    work->type = &prefetch_type;
    return sim_submit(stream, work);
}

SIM_CALL(cuMemAdvise, SIM_CURRENT,
         (CUdeviceptr pointer, size_t bytes, CUmem_advise advice, CUdevice device),
         ((void)bytes, (void)advice, (void)device, know_managed(pointer)))
SIM_CALL(cuMemAdvise_v2, SIM_CURRENT,
         (CUdeviceptr pointer, size_t bytes, CUmem_advise advice, CUmemLocation location),
         ((void)bytes, (void)advice, (void)location, know_managed(pointer)))
SIM_PAIR(cuMemPrefetchAsync, cuMemPrefetchAsync_ptsz, SIM_CURRENT,
         (CUdeviceptr pointer, size_t bytes, CUdevice device, CUstream stream),
         ((void)bytes, (void)device, prefetch(pointer, stream, per_thread)))
SIM_PAIR(cuMemPrefetchAsync_v2, cuMemPrefetchAsync_v2_ptsz, SIM_CURRENT,
         (CUdeviceptr pointer, size_t bytes, CUmemLocation location, unsigned flags,
          CUstream stream),
         ((void)bytes, (void)location, (void)flags, prefetch(pointer, stream, per_thread)))

// ---- registered memory ----

static CUresult enregister(void *memory, size_t bytes, unsigned flags) {
    if (memory == NULL || bytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_host_at((uintptr_t)memory) != NULL) {
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    struct sim_host_range range = {.start = (uintptr_t)memory,
                                   .size = bytes,
                                   .flags = flags,
                                   .registered = true,
                                   .context = sim_current()};
    return sim_host_add(range) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult unregister(const void *memory) {
    struct sim_host_range *range = sim_host_at((uintptr_t)memory);
    if (range == NULL || !range->registered) {
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    }
    if (range->start != (uintptr_t)memory) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_host_remove(range);
    return CUDA_SUCCESS;
}

SIM_CALL(cuMemHostRegister, SIM_CURRENT | SIM_UNSAFE, (void *memory, size_t bytes, unsigned flags),
         enregister(memory, bytes, flags))
SIM_CALL(cuMemHostRegister_v2, SIM_CURRENT | SIM_UNSAFE,
         (void *memory, size_t bytes, unsigned flags), enregister(memory, bytes, flags))
SIM_CALL(cuMemHostUnregister, SIM_CURRENT | SIM_UNSAFE, (void *memory), unregister(memory))

static CUresult device_pointer(CUdeviceptr *out, const void *memory, unsigned flags) {
    if (out == NULL || flags != 0 || !sim_options.maps_host ||
        sim_host_at((uintptr_t)memory) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = (uintptr_t)memory;
    return CUDA_SUCCESS;
}

static CUresult flags_of(unsigned *out, const void *memory) {
    const struct sim_host_range *range = sim_host_at((uintptr_t)memory);
    if (out == NULL || range == NULL || range->registered) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = range->flags;
    return CUDA_SUCCESS;
}

SIM_CALL(cuMemHostGetDevicePointer_v2, SIM_CURRENT,
         (CUdeviceptr * out, void *memory, unsigned flags), device_pointer(out, memory, flags))
SIM_CALL(cuMemHostGetFlags, SIM_CURRENT, (unsigned *flags, void *memory), flags_of(flags, memory))
