// What a pointer tells: cuPointerGetAttribute and its kin, for device and pinned host memory.
#include "sim/border/border.h"
#include "sim/device/device.h"
#include "sim/device/thread.h"
#include "sim/memory/allocate.h"
#include "sim/memory/chunk.h"
#include "sim/memory/ranges.h"
#include "sim/memory/window.h"

#include <string.h>

// What the attributes need to know of a pointer, wherever it points.
struct target {
    uintptr_t pointer;
    struct sim_allocation *allocation; // device memory, or
    struct sim_host_range *host;       // pinned host memory
    struct sim_window *reserved;       // by the program, which may have mapped the allocation there
    struct sim_mapping *mapped;
};

static bool resolve(CUdeviceptr pointer, struct target *target) {
    target->pointer = pointer;
    target->allocation = sim_allocation_at(pointer);
    target->host = target->allocation == NULL ? sim_host_at(pointer) : NULL;
    struct sim_window *window = sim_window_at(pointer);
    target->reserved = window != NULL && window->opened == 0 ? window : NULL;
    target->mapped = target->reserved != NULL ? sim_window_mapping(window, pointer) : NULL;
    return target->allocation != NULL || target->host != NULL || target->reserved != NULL;
}

static struct CUctx_st *context_of(const struct target *t) {
    const struct sim_allocation *allocation = t->allocation;
    if (allocation != NULL) {
        return allocation->kind == SIM_VIRTUAL ? NULL : allocation->context;
    }
    return t->host->context;
}

static struct sim_device *device_of(const struct target *t) {
    return t->allocation != NULL ? t->allocation->device : t->host->context->device;
}

static uintptr_t start_of(const struct target *t) {
    return t->allocation != NULL ? t->allocation->start : t->host->start;
}

static size_t size_of(const struct target *t) {
    return t->allocation != NULL ? t->allocation->size : t->host->size;
}

// What is mapped for memory of cuMemAlloc is whole pages, which small allocations share.
static uintptr_t mapping_start_of(const struct target *t) {
    bool plain = t->allocation != NULL && t->mapped == NULL;
    return plain ? t->allocation->start / SIM_PAGE * SIM_PAGE : start_of(t);
}

static size_t mapping_size_of(const struct target *t) {
    bool plain = t->allocation != NULL && t->mapped == NULL;
    size_t size = start_of(t) - mapping_start_of(t) + size_of(t);
    return plain ? (size + SIM_PAGE - 1) / SIM_PAGE * SIM_PAGE : size;
}

// A range is what can be mapped, a mapping what is.
static uintptr_t range_start_of(const struct target *t) {
    return t->reserved != NULL ? t->reserved->start : start_of(t);
}

static size_t range_size_of(const struct target *t) {
    return t->reserved != NULL ? t->reserved->size : size_of(t);
}

static unsigned long long block_of(const struct target *t) {
    return t->mapped != NULL       ? t->mapped->chunk->id
           : t->allocation != NULL ? t->allocation->buffer_id
                                   : t->host->buffer_id;
}

static unsigned access_of(const struct target *t) {
    if (t->mapped == NULL) {
        return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
    }
    const struct CUctx_st *current = sim_current();
    return (unsigned)sim_mapping_access(t->mapped,
                                        current != NULL ? current->device : device_of(t));
}

static CUresult host_pointer(const struct target *t, void *out) {
    if (t->host == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(out, &t->pointer, sizeof t->pointer);
    return CUDA_SUCCESS;
}

static void put_number(void *out, unsigned value) {
    memcpy(out, &value, sizeof value);
}

static void put_long(void *out, unsigned long long value) {
    memcpy(out, &value, sizeof value);
}

static CUresult put_flag(void *out, bool value) {
    *(bool *)out = value;
    return CUDA_SUCCESS;
}

static CUresult tell_identity(const struct target *t, CUpointer_attribute which, void *out) {
    struct CUctx_st *context = context_of(t);
    switch ((int)which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        memcpy(out, &context, sizeof context);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        put_long(out, t->pointer);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        return host_pointer(t, out);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        put_long(out, t->allocation != NULL ? t->allocation->buffer_id : t->host->buffer_id);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        put_long(out, block_of(t));
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        put_long(out, mapping_start_of(t));
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        put_long(out, mapping_size_of(t));
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static const CUmemoryPool no_pool = NULL;

// "ptr must be a pointer to memory obtained from cuMemAlloc()"; asking sets SYNC_MEMOPS.
static CUresult tell_tokens(const struct target *t, void *out) {
    if (t->allocation == NULL || t->allocation->kind != SIM_PLAIN) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    t->allocation->sync_memops = true;
    *(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS *)out =
        (CUDA_POINTER_ATTRIBUTE_P2P_TOKENS){.p2pToken = t->allocation->buffer_id};
    return CUDA_SUCCESS;
}

static CUresult tell_memory(const struct target *t, CUpointer_attribute which, void *out) {
    switch ((int)which) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        put_number(out, t->host != NULL && !t->host->managed ? CU_MEMORYTYPE_HOST
                                                             : CU_MEMORYTYPE_DEVICE);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        return put_flag(out,
                        t->allocation != NULL ? t->allocation->sync_memops : t->host->sync_memops);
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
        return tell_tokens(t, out);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        return put_flag(out, t->host != NULL && t->host->managed);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        put_number(out, (unsigned)device_of(t)->ordinal);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        return put_flag(out, t->allocation != NULL && t->allocation->kind == SIM_PLAIN);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        put_long(out, t->mapped != NULL ? t->mapped->chunk->properties.requestedHandleTypes : 0);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        return put_flag(out, t->mapped != NULL
                                 ? t->mapped->chunk->properties.allocFlags.gpuDirectRDMACapable != 0
                                 : t->allocation != NULL);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        put_number(out, access_of(t));
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        memcpy(out, t->allocation != NULL ? &t->allocation->pool : &no_pool, sizeof no_pool);
        return CUDA_SUCCESS;
    default:
        return tell_identity(t, which, out);
    }
}

// Of an address that is reserved and bare only these are known.
static CUresult tell(const struct target *t, CUpointer_attribute which, void *out) {
    bool bare = t->reserved != NULL && t->mapped == NULL;
    switch ((int)which) {
    case CU_POINTER_ATTRIBUTE_MAPPED:
        return put_flag(out, !bare);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        put_long(out, range_start_of(t));
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        put_long(out, range_size_of(t));
        return CUDA_SUCCESS;
    default:
        return bare ? CUDA_ERROR_INVALID_VALUE : tell_memory(t, which, out);
    }
}

static CUresult attribute(void *out, CUpointer_attribute which, CUdeviceptr pointer) {
    struct target target;
    if (out == NULL || !resolve(pointer, &target)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return tell(&target, which, out);
}

SIM_CALL(cuPointerGetAttribute, SIM_READY | SIM_STICKY,
         (void *out, CUpointer_attribute which, CUdeviceptr pointer),
         attribute(out, which, pointer))

static size_t width_of(CUpointer_attribute which) {
    switch ((int)which) {
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        return sizeof(bool);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        return sizeof(unsigned);
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
        return sizeof(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS);
    default:
        return sizeof(void *);
    }
}

// As an H100's driver (580) does it: a range is left as it was, MAPPED is as wide as an int.
static void put_unknown(CUpointer_attribute which, void *out) {
    if (which == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
        which == CU_POINTER_ATTRIBUTE_RANGE_SIZE) {
        return;
    }
    memset(out, 0, which == CU_POINTER_ATTRIBUTE_MAPPED ? sizeof(int) : width_of(which));
    if (which == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
        put_number(out, (unsigned)CU_DEVICE_INVALID);
    }
}

// "If ptr was not allocated by ... CUDA, the call succeeds and returns NULLs."
static CUresult attributes(unsigned count, CUpointer_attribute *which, void **out,
                           CUdeviceptr pointer) {
    struct target target;
    if (count == 0 || which == NULL || out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    bool known = resolve(pointer, &target);
    for (unsigned i = 0; i < count; i++) {
        if (!known || tell(&target, which[i], out[i]) != CUDA_SUCCESS) {
            put_unknown(which[i], out[i]);
        }
    }
    return CUDA_SUCCESS;
}

SIM_CALL(cuPointerGetAttributes, SIM_READY | SIM_STICKY,
         (unsigned count, CUpointer_attribute *which, void **out, CUdeviceptr pointer),
         attributes(count, which, out, pointer))

static CUresult set_attribute(const void *value, CUpointer_attribute which, CUdeviceptr pointer) {
    struct sim_allocation *allocation = sim_allocation_at(pointer);
    struct sim_host_range *range = allocation == NULL ? sim_host_at(pointer) : NULL;
    bool managed = range != NULL && range->managed;
    if (value == NULL || (allocation == NULL && !managed)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    // Seen by others (libfabric#12853, ucx#9895), and of every attribute on an H100 with driver
    // 580; not documented.
    if (allocation != NULL && allocation->kind == SIM_VIRTUAL) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (which != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *(managed ? &range->sync_memops : &allocation->sync_memops) = *(const unsigned *)value != 0;
    return CUDA_SUCCESS;
}

SIM_CALL(cuPointerSetAttribute, SIM_CURRENT,
         (const void *value, CUpointer_attribute which, CUdeviceptr pointer),
         set_attribute(value, which, pointer))
