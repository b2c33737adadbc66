// The management library tells the same devices as the driver does, and what they have in use.
#include "sim/nvml/nvml.h"
#include "sim/tests/check.h"

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlShutdown(void);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *text, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *text, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *out, unsigned size);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *out);
nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, unsigned *out);

static void same_device(CUdevice ordinal) {
    nvmlDevice_t by_index = NULL, by_bus = NULL, by_uuid = NULL;
    char bus[32], uuid[64], start[16];
    CUuuid bytes;
    DO(nvmlDeviceGetHandleByIndex_v2((unsigned)ordinal, &by_index));
    DO(cuDeviceGetPCIBusId(bus, sizeof bus, ordinal));
    DO(nvmlDeviceGetHandleByPciBusId_v2(bus, &by_bus));
    DO(nvmlDeviceGetUUID(by_index, uuid, sizeof uuid));
    DO(nvmlDeviceGetHandleByUUID(uuid, &by_uuid));
    CHECK(by_bus == by_index && by_uuid == by_index);
    DO(cuDeviceGetUuid(&bytes, ordinal));
    snprintf(start, sizeof start, "GPU-%02x%02x%02x%02x", (unsigned char)bytes.bytes[0],
             (unsigned char)bytes.bytes[1], (unsigned char)bytes.bytes[2],
             (unsigned char)bytes.bytes[3]);
    CHECK(strncmp(uuid, start, strlen(start)) == 0);
}

static void memory_in_use(void) {
    CUcontext context = NULL;
    CUdeviceptr memory = 0;
    nvmlDevice_t device = NULL;
    nvmlMemory_t before, after;
    size_t total = 0;
    DO(nvmlDeviceGetHandleByIndex_v2(0, &device));
    DO(nvmlDeviceGetMemoryInfo(device, &before));
    DO(cuDeviceTotalMem(&total, 0));
    CHECK(before.total == total && before.free == total - before.used);
    DO(cuDevicePrimaryCtxRetain(&context, 0));
    DO(cuCtxSetCurrent(context));
    DO(cuMemAlloc(&memory, 4 << 20));
    DO(nvmlDeviceGetMemoryInfo(device, &after));
    CHECK(after.used == before.used + (4 << 20));
    DO(cuMemFree(memory));
}

int main(void) {
    char share[] = "/tmp/sim-nvml-XXXXXX";
    unsigned count = 0, number = 0;
    nvmlDevice_t device = NULL;
    int file = mkstemp(share);
    CHECK(file >= 0);
    setenv("SIM_SHARE", share, 1);
    ANSWERS(NVML_ERROR_UNINITIALIZED, nvmlDeviceGetCount_v2(&count));
    DO(nvmlInit_v2());
    DO(cuInit(0));
    DO(nvmlDeviceGetCount_v2(&count));
    CHECK(count == 2);
    same_device(0);
    same_device(1);
    ANSWERS(NVML_ERROR_NOT_FOUND, nvmlDeviceGetHandleByIndex_v2(2, &device));
    ANSWERS(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetUUID(NULL, share, 1));
    DO(nvmlDeviceGetHandleByIndex_v2(0, &device));
    ANSWERS(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetNvLinkState(device, 0, &number));
    memory_in_use();
    DO(nvmlShutdown());
    ANSWERS(NVML_ERROR_UNINITIALIZED, nvmlShutdown());
    close(file);
    unlink(share);
    return 0;
}
