// Devices: what they are called and can do.
#include "sim/base/limits.h"
#include "sim/base/lock.h"
#include "sim/base/options.h"
#include "sim/border/border.h"
#include "sim/border/tool.h"
#include "sim/device/devices.h"
#include "sim/device/share.h"

#include <stdio.h>
#include <string.h>

static CUresult initialise(void) {
    CUresult result = sim_initialise();
    if (result == CUDA_SUCCESS) {
        sim_lock_give();
        sim_tool_inject();
        sim_lock_take();
    }
    return result;
}

SIM_CALL(cuInit, SIM_NOTHING, (unsigned flags),
         flags != 0 ? CUDA_ERROR_INVALID_VALUE : initialise())

static CUresult put(int *out, int value) {
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = value;
    return CUDA_SUCCESS;
}

SIM_CALL(cuDriverGetVersion, SIM_NOTHING, (int *version), put(version, sim_options.driver_version))
SIM_CALL(cuDeviceGetCount, SIM_READY, (int *count), put(count, sim_options.devices))
SIM_CALL(cuDeviceGet, SIM_READY, (CUdevice * device, int ordinal),
         sim_device_of(ordinal) == NULL ? CUDA_ERROR_INVALID_DEVICE : put(device, ordinal))

static CUresult name_of(char *name, int length, CUdevice device) {
    if (sim_device_of(device) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (name == NULL || length <= 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    snprintf(name, (size_t)length, "Simulated GPU");
    return CUDA_SUCCESS;
}

SIM_CALL(cuDeviceGetName, SIM_READY, (char *name, int length, CUdevice device),
         name_of(name, length, device))

static CUresult uuid_of(CUuuid *uuid, CUdevice device) {
    if (sim_device_of(device) == NULL || uuid == NULL) {
        return uuid == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
    }
    sim_share_uuid(sim_device_of(device)->place, (unsigned char *)uuid->bytes);
    return CUDA_SUCCESS;
}

SIM_CALL(cuDeviceGetUuid, SIM_READY, (CUuuid * uuid, CUdevice device), uuid_of(uuid, device))
SIM_CALL(cuDeviceGetUuid_v2, SIM_READY, (CUuuid * uuid, CUdevice device), uuid_of(uuid, device))

static CUresult total_of(size_t *bytes, CUdevice ordinal) {
    const struct sim_device *device = sim_device_of(ordinal);
    if (device == NULL || bytes == NULL) {
        return device == NULL ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    }
    *bytes = device->limit * SIM_PAGE;
    return CUDA_SUCCESS;
}

static CUresult total_of_32(unsigned *bytes, CUdevice ordinal) {
    size_t all = 0;
    CUresult result = bytes == NULL ? CUDA_ERROR_INVALID_VALUE : total_of(&all, ordinal);
    if (result == CUDA_SUCCESS) {
        *bytes = all > UINT32_MAX ? UINT32_MAX : (unsigned)all;
    }
    return result;
}

SIM_CALL(cuDeviceTotalMem, SIM_READY, (unsigned *bytes, CUdevice device),
         total_of_32(bytes, device))
SIM_CALL(cuDeviceTotalMem_v2, SIM_READY, (size_t * bytes, CUdevice device), total_of(bytes, device))

static CUresult bus_id_of(char *text, int length, CUdevice device) {
    if (sim_device_of(device) == NULL || text == NULL || length < 13) {
        return sim_device_of(device) == NULL ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    }
    snprintf(text, (size_t)length, "0000:%02X:00.0", sim_device_of(device)->place + 1);
    return CUDA_SUCCESS;
}

static CUresult device_of_bus_id(CUdevice *device, const char *text) {
    unsigned domain = 0, bus = 0;
    if (device == NULL || text == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sscanf(text, "%x:%x:", &domain, &bus) != 2 || sim_device_in((int)bus - 1) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *device = sim_device_in((int)bus - 1)->ordinal;
    return CUDA_SUCCESS;
}

SIM_CALL(cuDeviceGetPCIBusId, SIM_READY, (char *text, int length, CUdevice device),
         bus_id_of(text, length, device))
SIM_CALL(cuDeviceGetByPCIBusId, SIM_READY, (CUdevice * device, const char *text),
         device_of_bus_id(device, text))

// ---- attributes: those of an H100-class device as its public data sheet and the guide's table of
// compute capability 9.0 give them; what is not modelled is 0 ----

static const struct {
    CUdevice_attribute which;
    int value;
} attributes[] = {
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 227 << 10},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 228 << 10},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1 << 10},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 64 << 10},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 2619000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 50 << 20},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 1},
};

static CUresult attribute_of(int *out, CUdevice_attribute which, CUdevice device) {
    if (sim_device_of(device) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (out == NULL || which <= 0 || which >= CU_DEVICE_ATTRIBUTE_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = which == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? device + 1 : 0;
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        if (attributes[i].which == which) {
            *out = attributes[i].value;
        }
    }
    if (which == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) {
        *out = sim_options.mapping;
    }
    if (which == CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY && !sim_options.maps_host) {
        *out = 0;
    }
    return CUDA_SUCCESS;
}

SIM_CALL(cuDeviceGetAttribute, SIM_READY, (int *value, CUdevice_attribute which, CUdevice device),
         attribute_of(value, which, device))

static CUresult capability_of(int *major, int *minor, CUdevice device) {
    CUresult result = attribute_of(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    return result != CUDA_SUCCESS
               ? result
               : attribute_of(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
}

SIM_CALL(cuDeviceComputeCapability, SIM_READY, (int *major, int *minor, CUdevice device),
         capability_of(major, minor, device))
