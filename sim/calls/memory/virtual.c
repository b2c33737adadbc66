// Addresses apart from memory: cuMemAddressReserve, cuMemCreate, cuMemMap and their kin. Unmapping
// waits for all work first. Guarded by the lock.
#include "sim/base/handle.h"
#include "sim/base/limits.h"
#include "sim/border/border.h"
#include "sim/device/devices.h"
#include "sim/device/pages.h"
#include "sim/memory/window.h"
#include "sim/order/wait.h"

#include <stdlib.h>
#include <sys/mman.h>

struct sim_chunk {
    struct sim_device *device;
    CUmemAllocationProp properties;
    uintptr_t start; // its pages in the device's window, which no program is told
    size_t size;
    unsigned handles, mappings;
};

// ---- addresses ----

static bool whole_pages(size_t size) {
    return size != 0 && size % SIM_PAGE == 0;
}

static CUresult address_reserve(CUdeviceptr *out, size_t size, size_t alignment) {
    if (out == NULL || !whole_pages(size) || (alignment & (alignment - 1)) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_window *window = alignment > SIM_PAGE ? NULL : sim_window_new(size);
    if (window == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = window->start;
    return CUDA_SUCCESS;
}

static CUresult address_free(CUdeviceptr address, size_t size) {
    struct sim_window *window = sim_window_at(address);
    if (window == NULL || window->start != address || window->size != size ||
        window->mappings != NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_window_drop(window);
    return CUDA_SUCCESS;
}

SIM_CALL(cuMemAddressReserve, SIM_READY,
         (CUdeviceptr * out, size_t size, size_t alignment, CUdeviceptr wish,
          unsigned long long flags),
         flags != 0 ? CUDA_ERROR_INVALID_VALUE
                    : ((void)wish, address_reserve(out, size, alignment)))
SIM_CALL(cuMemAddressFree, SIM_READY, (CUdeviceptr address, size_t size),
         address_free(address, size))

// ---- memory ----

static struct sim_chunk *chunk_of(CUmemGenericAllocationHandle handle) {
    struct sim_chunk *chunk = (struct sim_chunk *)(uintptr_t)handle;
    return sim_handle_is(chunk, SIM_CHUNK) ? chunk : NULL;
}

static void chunk_release(struct sim_chunk *chunk) {
    if (chunk->handles == 0) {
        sim_handle_remove(chunk);
    }
    if (chunk->handles == 0 && chunk->mappings == 0) {
        sim_pages_give(chunk->device, chunk->start, chunk->size / SIM_PAGE);
        free(chunk);
    }
}

static bool properties_valid(const CUmemAllocationProp *p) {
    return p != NULL && p->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           p->location.type == CU_MEM_LOCATION_TYPE_DEVICE && sim_device_of(p->location.id) != NULL;
}

static CUresult create(CUmemGenericAllocationHandle *out, size_t size,
                       const CUmemAllocationProp *properties) {
    if (out == NULL || !whole_pages(size) || !properties_valid(properties)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_chunk *chunk = calloc(1, sizeof *chunk);
    if (chunk == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    chunk->device = sim_device_of(properties->location.id);
    chunk->properties = *properties;
    chunk->size = size;
    chunk->handles = 1;
    chunk->start = sim_pages_take(chunk->device, size / SIM_PAGE, SIM_HIDDEN_PAGE);
    if (chunk->start == 0 || !sim_handle_add(chunk, SIM_CHUNK)) {
        free(chunk);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = (uintptr_t)chunk;
    return CUDA_SUCCESS;
}

static CUresult release(CUmemGenericAllocationHandle handle) {
    struct sim_chunk *chunk = chunk_of(handle);
    if (chunk == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    chunk->handles--;
    chunk_release(chunk);
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
    const struct sim_chunk *chunk = chunk_of(handle);
    if (out == NULL || chunk == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = chunk->properties;
    return CUDA_SUCCESS;
}

SIM_CALL(cuMemCreate, SIM_READY | SIM_UNSAFE,
         (CUmemGenericAllocationHandle * out, size_t size, const CUmemAllocationProp *properties,
          unsigned long long flags),
         flags != 0 ? CUDA_ERROR_INVALID_VALUE : create(out, size, properties))
SIM_CALL(cuMemRelease, SIM_READY | SIM_UNSAFE, (CUmemGenericAllocationHandle handle),
         release(handle))
SIM_CALL(cuMemGetAllocationGranularity, SIM_READY,
         (size_t * out, const CUmemAllocationProp *properties,
          CUmemAllocationGranularity_flags option),
         ((void)option, granularity(out, properties)))
SIM_CALL(cuMemGetAllocationPropertiesFromHandle, SIM_READY,
         (CUmemAllocationProp * out, CUmemGenericAllocationHandle handle),
         properties_of(out, handle))

// ---- mapping ----

static bool free_to_map(const struct sim_window *window, uintptr_t address, size_t size) {
    if (window == NULL || address - window->start > window->size - size) {
        return false;
    }
    for (const struct sim_mapping *m = window->mappings; m != NULL; m = m->next) {
        if (address < m->as.start + m->as.size && m->as.start < address + size) {
            return false;
        }
    }
    return true;
}

static CUresult map(CUdeviceptr address, size_t size, CUmemGenericAllocationHandle handle) {
    struct sim_chunk *chunk = chunk_of(handle);
    struct sim_window *window = sim_window_at(address);
    if (chunk == NULL || size != chunk->size || address % SIM_PAGE != 0 ||
        (window != NULL && size > window->size) || !free_to_map(window, address, size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_mapping *mapping = sim_window_map(window, address, size, chunk->device->file,
                                                 (off_t)(chunk->start - chunk->device->base));
    if (mapping == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    mapping->as.device = chunk->device;
    mapping->as.context = &chunk->device->primary;
    mapping->chunk = chunk;
    chunk->mappings++;
    return CUDA_SUCCESS;
}

// Whole mappings only, as the documentation says.
static bool covers_whole_mappings(const struct sim_window *window, uintptr_t start, size_t size) {
    uintptr_t at = start;
    while (at - start < size) {
        const struct sim_mapping *mapping = sim_window_mapping(window, at);
        if (mapping == NULL || mapping->as.start != at || mapping->chunk == NULL) {
            return false;
        }
        at += mapping->as.size;
    }
    return at - start == size;
}

static CUresult unmap(CUdeviceptr address, size_t size) {
    struct sim_window *window = sim_window_at(address);
    if (window == NULL || !whole_pages(size) || !covers_whole_mappings(window, address, size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_devices_finish();
    for (size_t done = 0; done < size;) {
        struct sim_mapping *mapping = sim_window_mapping(window, address + done);
        struct sim_chunk *chunk = mapping->chunk;
        done += mapping->as.size;
        sim_window_unmap(window, mapping);
        chunk->mappings--;
        chunk_release(chunk);
    }
    return CUDA_SUCCESS;
}

static bool set_access_of(struct sim_mapping *mapping, const CUmemAccessDesc *access,
                          size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
            sim_device_of(access[i].location.id) == NULL) {
            return false;
        }
        unsigned bit = 1u << access[i].location.id;
        bool granted = access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
                       access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ;
        mapping->access = granted ? mapping->access | bit : mapping->access & ~bit;
    }
    return true;
}

static CUresult set_access(CUdeviceptr address, size_t size, const CUmemAccessDesc *access,
                           size_t count) {
    const struct sim_window *window = sim_window_at(address);
    if (window == NULL || access == NULL || !whole_pages(size) ||
        !covers_whole_mappings(window, address, size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t done = 0; done < size;) {
        struct sim_mapping *mapping = sim_window_mapping(window, address + done);
        if (!set_access_of(mapping, access, count)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        done += mapping->as.size;
    }
    return CUDA_SUCCESS;
}

static CUresult get_access(unsigned long long *flags, const CUmemLocation *location,
                           CUdeviceptr address) {
    const struct sim_window *window = sim_window_at(address);
    const struct sim_mapping *mapping = window == NULL ? NULL : sim_window_mapping(window, address);
    if (flags == NULL || location == NULL || mapping == NULL ||
        sim_device_of(location->id) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = mapping->access & (1u << location->id) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                    : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

static CUresult retain(CUmemGenericAllocationHandle *out, uintptr_t address) {
    const struct sim_window *window = sim_window_at(address);
    const struct sim_mapping *mapping = window == NULL ? NULL : sim_window_mapping(window, address);
    if (out == NULL || mapping == NULL || mapping->chunk == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (mapping->chunk->handles++ == 0 && !sim_handle_add(mapping->chunk, SIM_CHUNK)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = (uintptr_t)mapping->chunk;
    return CUDA_SUCCESS;
}

SIM_CALL(cuMemMap, SIM_READY | SIM_UNSAFE,
         (CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
          unsigned long long flags),
         offset != 0 || flags != 0 ? CUDA_ERROR_INVALID_VALUE : map(address, size, handle))
SIM_CALL(cuMemUnmap, SIM_READY | SIM_UNSAFE, (CUdeviceptr address, size_t size),
         unmap(address, size))
SIM_CALL(cuMemSetAccess, SIM_READY | SIM_UNSAFE,
         (CUdeviceptr address, size_t size, const CUmemAccessDesc *access, size_t count),
         set_access(address, size, access, count))
SIM_CALL(cuMemGetAccess, SIM_READY,
         (unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address),
         get_access(flags, location, address))
SIM_CALL(cuMemRetainAllocationHandle, SIM_READY,
         (CUmemGenericAllocationHandle * out, void *address), retain(out, (uintptr_t)address))
