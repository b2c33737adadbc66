// The management library tells the same devices as the driver does, and what they have in use.
#include "sim/nvml/nvml.h"
#include "sim/tests/check.h"

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
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

static void same_device(unsigned place, CUdevice ordinal) {
    nvmlDevice_t by_index = NULL, by_bus = NULL, by_uuid = NULL;
    char bus[32], uuid[64], start[16];
    CUuuid bytes;
    DO(nvmlDeviceGetHandleByIndex_v2(place, &by_index));
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

// A process sees the devices that CUDA_VISIBLE_DEVICES names, in that order; the library all.
static void one_is_visible(const char *list, int visible) {
    int status = -1, count = -1;
    unsigned all = 0;
    pid_t child = fork();
    if (child == 0) {
        setenv("CUDA_VISIBLE_DEVICES", list, 1);
        CHECK(cuInit(0) == (visible == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS));
        DO(nvmlInit_v2());
        DO(nvmlDeviceGetCount_v2(&all));
        CHECK(all == 2);
        for (int i = 0; i < visible; i++) {
            DO(cuDeviceGetCount(&count));
            CHECK(count == visible);
            same_device((unsigned)(list[2 * i] - '0'), i);
        }
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(void) {
    char share[] = "/tmp/sim-nvml-XXXXXX";
    unsigned count = 0, number = 0;
    nvmlDevice_t device = NULL;
    int file = mkstemp(share);
    CHECK(file >= 0);
    setenv("SIM_SHARE", share, 1);
    one_is_visible("1", 1);
    one_is_visible("1,0", 2);
    one_is_visible("1,2,0", 1);
    one_is_visible("1,1", 0);
    one_is_visible("", 0);
    ANSWERS(NVML_ERROR_UNINITIALIZED, nvmlDeviceGetCount_v2(&count));
    DO(nvmlInit_v2());
    DO(cuInit(0));
    DO(nvmlDeviceGetCount_v2(&count));
    CHECK(count == 2);
    same_device(0, 0);
    same_device(1, 1);
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
