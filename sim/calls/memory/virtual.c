// Addresses apart from memory: cuMemAddressReserve, cuMemMap and their kin. Unmapping waits for
// nothing: whether a real driver does is not documented. Guarded by the lock.
#include "sim/base/handle.h"
#include "sim/base/limits.h"
#include "sim/base/options.h"
#include "sim/border/border.h"
#include "sim/calls/memory/handle.h"
#include "sim/device/devices.h"
#include "sim/memory/chunk.h"
#include "sim/memory/flight.h"
#include "sim/memory/window.h"

// ---- addresses ----

static bool whole_pages(size_t size) {
    return size != 0 && size % SIM_PAGE == 0;
}

static CUresult address_reserve(CUdeviceptr *out, size_t size, size_t alignment) {
    if (out == NULL || !whole_pages(size) || (alignment & (alignment - 1)) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_window *window = sim_window_new(size, alignment > SIM_PAGE ? alignment : SIM_PAGE);
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

SIM_SIZED(cuMemAddressReserve, SIM_READY | SIM_MAPPING, size,
          (CUdeviceptr * out, size_t size, size_t alignment, CUdeviceptr wish,
           unsigned long long flags),
          flags != 0 ? CUDA_ERROR_INVALID_VALUE
                     : ((void)wish, address_reserve(out, size, alignment)))
SIM_SIZED(cuMemAddressFree, SIM_READY | SIM_MAPPING, size, (CUdeviceptr address, size_t size),
          address_free(address, size))

// ---- mapping ----

static bool free_to_map(const struct sim_window *window, uintptr_t address, size_t size) {
    return window != NULL && window->opened == 0 && size <= window->size &&
           address - window->start <= window->size - size && sim_window_bare(window, address, size);
}

static CUresult map(CUdeviceptr address, size_t size, CUmemGenericAllocationHandle handle) {
    struct sim_chunk *chunk = sim_chunk_of(handle);
    struct sim_window *window = sim_window_at(address);
    if (chunk == NULL || size != chunk->size || address % SIM_PAGE != 0 ||
        !free_to_map(window, address, size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_mapping *mapping =
        sim_window_map(window, address, size, sim_chunk_file(chunk), chunk->offset);
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
    for (size_t done = 0; done < size;) {
        struct sim_mapping *mapping = sim_window_mapping(window, address + done);
        struct sim_chunk *chunk = mapping->chunk;
        done += mapping->as.size;
        sim_window_unmap(window, mapping);
        chunk->mappings--;
        sim_chunk_settle(chunk);
    }
    return CUDA_SUCCESS;
}

static bool may_reach(const struct sim_device *device, const struct sim_device *home) {
    return device == home || (device != NULL && sim_options.peers);
}

static CUresult accesses_valid(const struct sim_device *home, const CUmemAccessDesc *access,
                               size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
            (access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
             access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
             access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (!may_reach(sim_device_of(access[i].location.id), home)) {
            return CUDA_ERROR_INVALID_DEVICE;
        }
    }
    return CUDA_SUCCESS;
}

static void set_access_of(struct sim_mapping *mapping, const CUmemAccessDesc *access,
                          size_t count) {
    unsigned before = mapping->access;
    for (size_t i = 0; i < count; i++) {
        unsigned bit = 1u << access[i].location.id;
        bool reads = access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
        bool writes = access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        mapping->access = reads ? mapping->access | bit : mapping->access & ~bit;
        mapping->writes = writes ? mapping->writes | bit : mapping->writes & ~bit;
    }
    sim_flight_break(mapping->first, mapping->as.taken, before & ~mapping->access);
}

static CUresult set_access(CUdeviceptr address, size_t size, const CUmemAccessDesc *access,
                           size_t count) {
    const struct sim_window *window = sim_window_at(address);
    if (window == NULL || access == NULL || !whole_pages(size) ||
        !covers_whole_mappings(window, address, size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_mapping *mapping = NULL;
    for (size_t done = 0; done < size; done += mapping->as.size) {
        mapping = sim_window_mapping(window, address + done);
        CUresult result = accesses_valid(mapping->as.device, access, count);
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    for (size_t done = 0; done < size; done += mapping->as.size) {
        mapping = sim_window_mapping(window, address + done);
        set_access_of(mapping, access, count);
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
    *flags = sim_mapping_access(mapping, sim_device_of(location->id));
    return CUDA_SUCCESS;
}

SIM_SIZED(cuMemMap, SIM_READY | SIM_MAPPING, size,
          (CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
           unsigned long long flags),
          offset != 0 || flags != 0 ? CUDA_ERROR_INVALID_VALUE : map(address, size, handle))
SIM_SIZED(cuMemUnmap, SIM_READY | SIM_MAPPING | SIM_UNSAFE, size,
          (CUdeviceptr address, size_t size), unmap(address, size))
SIM_SIZED(cuMemSetAccess, SIM_READY | SIM_MAPPING, size,
          (CUdeviceptr address, size_t size, const CUmemAccessDesc *access, size_t count),
          set_access(address, size, access, count))
SIM_CALL(cuMemGetAccess, SIM_READY | SIM_MAPPING,
         (unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address),
         get_access(flags, location, address))
