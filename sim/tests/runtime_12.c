// What libcudart.so.12 has in another form than version 13: cudaGetDeviceProperties_v2 fills
// version 12's structure, whose fields are read here at their places in version 12.9.
#include "sim/tests/check.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <string.h>

cudaError_t CUDARTAPI cudaGetDeviceProperties_v2(void *to, int device);

enum { SIZE = 1032 };

static int number_at(const char *properties, size_t place) {
    int number = 0;
    memcpy(&number, properties + place, sizeof number);
    return number;
}

int main(void) {
    static const struct {
        CUdevice_attribute which;
        size_t place;
    } numbers[] = {
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 308},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 336},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 360},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 388},
        {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 400},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 576},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 604},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 624},
        {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 652},
        {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 688},
        {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 744},
        {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 772},
    };
    char properties[SIZE + 8], name[256];
    size_t total = 0, told = 0;
    memset(properties, 'e', sizeof properties);
    DO(cudaGetDeviceProperties_v2(properties, 0));
    CHECK(properties[SIZE] == 'e' && properties[SIZE - 1] == 0);
    DO(cuDeviceGetName(name, sizeof name, 0));
    CHECK(strcmp(name, properties) == 0);
    DO(cuDeviceTotalMem(&total, 0));
    memcpy(&told, properties + 288, sizeof told);
    CHECK(told == total);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        int number = 0;
        DO(cuDeviceGetAttribute(&number, numbers[i].which, 0));
        CHECK(number_at(properties, numbers[i].place) == number);
    }
    ANSWERS(cudaErrorInvalidValue, cudaGetDeviceProperties_v2(NULL, 0));
    return 0;
}
