// cudaGetDeviceProperties_v2 of libcudart.so.12: version 13's answer in version 12's structure,
// which has some fields more between the same ones. Places are in bytes, as version 12.9 has them.
#include "sim/runtime/runtime.h"

#include <stddef.h>
#include <string.h>

enum { SIZE_12 = 1032, CLOCK_RATE = 348, MEMORY_CLOCK_RATE = 608 };

// Fields that follow each other in both, from one of version 13 up to, without, another.
#define RUN(place, first, past)                                                                    \
    { place, offsetof(struct cudaDeviceProp, first), offsetof(struct cudaDeviceProp, past) }
static const struct {
    size_t place, first, past;
} runs[] = {
    RUN(0, name, totalConstMem),
    RUN(352, totalConstMem, multiProcessorCount),
    RUN(388, multiProcessorCount, integrated),
    RUN(396, integrated, maxTexture1D),
    RUN(408, maxTexture1D, maxTexture2D),
    RUN(420, maxTexture2D, memoryBusWidth),
    RUN(612, memoryBusWidth, sharedMemPerMultiprocessor),
    RUN(640, sharedMemPerMultiprocessor, pageableMemoryAccess),
    RUN(672, pageableMemoryAccess, sharedMemPerBlockOptin),
    RUN(696, sharedMemPerBlockOptin, reserved),
};
#undef RUN

static void put_number(char *to, size_t place, CUdevice_attribute which, int device) {
    int value = 0;
    rt_driver.cuDeviceGetAttribute(&value, which, device);
    memcpy(to + place, &value, sizeof value);
}

static cudaError_t properties(char *to, int device) {
    struct cudaDeviceProp all;
    cudaError_t result = to == NULL ? cudaErrorInvalidValue : rt_properties_of_13(&all, device);
    if (result != cudaSuccess) {
        return result;
    }
    memset(to, 0, SIZE_12);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        memcpy(to + runs[i].place, (const char *)&all + runs[i].first,
               runs[i].past - runs[i].first);
    }
    put_number(to, CLOCK_RATE, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, device);
    put_number(to, MEMORY_CLOCK_RATE, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, device);
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGetDeviceProperties_v2(void *to, int device);
RT_PLAIN(cudaGetDeviceProperties_v2, (void *to, int device), properties(to, device))
