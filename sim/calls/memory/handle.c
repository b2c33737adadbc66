// Memory apart from addresses: cuMemCreate, what is asked of its handles, and how other processes
// get them. Guarded by the lock.
#include "sim/calls/memory/handle.h"

#include "sim/base/handle.h"
#include "sim/base/limits.h"
#include "sim/border/border.h"
#include "sim/device/devices.h"
#include "sim/memory/chunk.h"
#include "sim/memory/window.h"

#include <string.h>

struct sim_chunk *sim_chunk_of(CUmemGenericAllocationHandle handle) {
    struct sim_chunk *chunk = (struct sim_chunk *)(uintptr_t)handle;
    return sim_handle_is(chunk, SIM_CHUNK) ? chunk : NULL;
}

static bool properties_valid(const CUmemAllocationProp *p) {
    return p != NULL && p->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           p->location.type == CU_MEM_LOCATION_TYPE_DEVICE && sim_device_of(p->location.id) != NULL;
}

// A further handle of a chunk, all of them the same value.
static CUresult give_handle(CUmemGenericAllocationHandle *out, struct sim_chunk *chunk) {
    if (chunk->handles == 0 && !sim_handle_add(chunk, SIM_CHUNK)) {
        sim_chunk_settle(chunk);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    chunk->handles++;
    *out = (uintptr_t)chunk;
    return CUDA_SUCCESS;
}

static CUresult create(CUmemGenericAllocationHandle *out, size_t size,
                       const CUmemAllocationProp *properties) {
    if (out == NULL || size == 0 || size % SIM_PAGE != 0 || !properties_valid(properties)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE &&
        properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        return CUDA_ERROR_NOT_SUPPORTED; // those of other systems, and fabric handles
    }
    struct sim_chunk *chunk =
        sim_chunk_new(sim_device_of(properties->location.id), size, properties);
    return chunk == NULL ? CUDA_ERROR_OUT_OF_MEMORY : give_handle(out, chunk);
}

static CUresult release(CUmemGenericAllocationHandle handle) {
    struct sim_chunk *chunk = sim_chunk_of(handle);
    if (chunk == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (--chunk->handles == 0) {
        sim_handle_remove(chunk);
        sim_chunk_settle(chunk);
    }
    return CUDA_SUCCESS;
}

static CUresult granularity(size_t *out, const CUmemAllocationProp *properties) {
    if (out == NULL || !properties_valid(properties)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = SIM_PAGE;
    return CUDA_SUCCESS;
}

static CUresult properties_of(CUmemAllocationProp *out, CUmemGenericAllocationHandle handle) {
    const struct sim_chunk *chunk = sim_chunk_of(handle);
    if (out == NULL || chunk == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = chunk->properties;
    return CUDA_SUCCESS;
}

static CUresult retain(CUmemGenericAllocationHandle *out, uintptr_t address) {
    const struct sim_window *window = sim_window_at(address);
    const struct sim_mapping *mapping = window == NULL ? NULL : sim_window_mapping(window, address);
    if (out == NULL || mapping == NULL || mapping->chunk == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return give_handle(out, mapping->chunk);
}

// ---- descriptors for other processes ----

static CUresult export(void *out, CUmemGenericAllocationHandle handle,
                       CUmemAllocationHandleType type) {
    struct sim_chunk *chunk = sim_chunk_of(handle);
    if (out == NULL || chunk == NULL || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        !(chunk->properties.requestedHandleTypes & type)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    int file = sim_chunk_describe(&chunk, 1, 0);
    if (file < 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(out, &file, sizeof file);
    return CUDA_SUCCESS;
}

static CUresult import(CUmemGenericAllocationHandle *out, intptr_t file,
                       CUmemAllocationHandleType type) {
    struct sim_chunk *chunk = NULL;
    if (out == NULL || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = sim_chunk_import((int)file, &chunk);
    return result == CUDA_SUCCESS ? give_handle(out, chunk) : result;
}

SIM_SIZED(cuMemCreate, SIM_READY | SIM_MAPPING, size,
          (CUmemGenericAllocationHandle * out, size_t size, const CUmemAllocationProp *properties,
           unsigned long long flags),
          flags != 0 ? CUDA_ERROR_INVALID_VALUE : create(out, size, properties))
SIM_CALL(cuMemRelease, SIM_READY | SIM_MAPPING | SIM_UNSAFE, (CUmemGenericAllocationHandle handle),
         release(handle))
SIM_CALL(cuMemGetAllocationGranularity, SIM_READY | SIM_MAPPING,
         (size_t * out, const CUmemAllocationProp *properties,
          CUmemAllocationGranularity_flags option),
         ((void)option, granularity(out, properties)))
SIM_CALL(cuMemGetAllocationPropertiesFromHandle, SIM_READY | SIM_MAPPING,
         (CUmemAllocationProp * out, CUmemGenericAllocationHandle handle),
         properties_of(out, handle))
SIM_CALL(cuMemExportToShareableHandle, SIM_READY | SIM_MAPPING | SIM_UNSAFE,
         (void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
          unsigned long long flags),
         flags != 0 ? CUDA_ERROR_INVALID_VALUE : export(out, handle, type))
SIM_CALL(cuMemImportFromShareableHandle, SIM_READY | SIM_MAPPING | SIM_UNSAFE,
         (CUmemGenericAllocationHandle * out, void *file, CUmemAllocationHandleType type),
         import(out, (intptr_t)file, type))
SIM_CALL(cuMemRetainAllocationHandle, SIM_READY | SIM_MAPPING,
         (CUmemGenericAllocationHandle * out, void *address), retain(out, (uintptr_t)address))
