/* Host memory that the device reaches. */
#include "interpose/features/spill/host_memory.h"

bool bfc_host_memory_can_be_had(const struct bfc_driver *driver, CUdevice device) {
    int maps = 0;
    return driver->cuMemHostAlloc && driver->cuMemFreeHost &&
           driver->cuMemHostGetDevicePointer_v2 && driver->cuDeviceGetAttribute &&
           driver->cuDeviceGetAttribute(&maps, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, device) ==
               CUDA_SUCCESS &&
           maps;
}

/* Only a device address that is the host's too is the same in all contexts. */
static bool is_unified(const struct bfc_driver *driver, void *memory, CUdeviceptr *pointer) {
    return driver->cuMemHostGetDevicePointer_v2(pointer, memory, 0) == CUDA_SUCCESS &&
           *pointer == (CUdeviceptr)memory;
}

CUresult bfc_host_memory_take(const struct bfc_driver *driver, const struct bfc_arena *arena,
                              uint64_t bytes, bool is_first, CUdeviceptr *pointer,
                              const char **why) {
    (void)arena, (void)is_first;
    void *memory = NULL;
    CUresult result = driver->cuMemHostAlloc(&memory, bytes,
                                             CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    *why = "the driver did not pin host memory";
    if (bfc_driver_is_fatal(result))
        return result;
    if (result != CUDA_SUCCESS)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (is_unified(driver, memory, pointer))
        return CUDA_SUCCESS;
    *why = "the device does not reach host memory by its own address";
    driver->cuMemFreeHost(memory);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult bfc_host_memory_give(const struct bfc_driver *driver, CUdeviceptr pointer) {
    return driver->cuMemFreeHost((void *)pointer);
}
