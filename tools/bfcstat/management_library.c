#include "tools/bfcstat/management_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Declarations of those parts of NVIDIA's management library that bfcstat uses, after its
 * documentation (NVML API Reference). Each function returns 0 on success. */
typedef struct opaque_device *device_handle;

struct memory {
    /* bytes; `used` includes what the driver keeps for itself */
    unsigned long long total, free, used;
};

struct address {
    char legacy[16];
    unsigned domain, bus, device, vendor, subsystem;
    char text[32];
};

#define CALLS(X)                                                                                   \
    X(nvmlInit_v2, (void))                                                                         \
    X(nvmlDeviceGetCount_v2, (unsigned *))                                                         \
    X(nvmlDeviceGetHandleByIndex_v2, (unsigned, device_handle *))                                  \
    X(nvmlDeviceGetHandleByUUID, (const char *, device_handle *))                                  \
    X(nvmlDeviceGetName, (device_handle, char *, unsigned))                                        \
    X(nvmlDeviceGetUUID, (device_handle, char *, unsigned))                                        \
    X(nvmlDeviceGetPciInfo_v3, (device_handle, struct address *))                                  \
    X(nvmlDeviceGetMemoryInfo, (device_handle, struct memory *))

static struct {
#define FIELD(name, parameters) int(*name) parameters;
    CALLS(FIELD)
#undef FIELD
    bool open;
} library;

static bool find_calls(void *handle) {
    bool all = true;
#define FIND(name, parameters)                                                                     \
    *(void **)&library.name = dlsym(handle, #name);                                                \
    all = all && library.name;
    CALLS(FIND)
#undef FIND
    return all;
}

static bool open_library(void) {
    if (library.open)
        return true;
    void *handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    library.open = handle && find_calls(handle) && library.nvmlInit_v2() == 0;
    if (handle && !library.open)
        dlclose(handle);
    return library.open;
}

/* Reads the 16 bytes of a UUID from a text such as "GPU-00010203-0405-..." or "MIG-...". After a
 * wrong digit the rest is 0. */
static void read_uuid(const char *text, uint8_t uuid[16]) {
    const char *digits = strchr(text, '-');
    memset(uuid, 0, 16);
    for (size_t i = 0; digits && i < 16; i++) {
        unsigned byte;
        digits += *digits == '-';
        if (sscanf(digits, "%2x", &byte) != 1)
            return;
        uuid[i] = (uint8_t)byte;
        digits += 2;
    }
}

/* Sets how much memory the device has and uses. False: the library does not tell, as for devices
 * that have no memory of their own. */
static bool read_memory(device_handle device, struct gpu *gpu) {
    struct memory memory;
    if (library.nvmlDeviceGetMemoryInfo(device, &memory) != 0)
        return false;
    gpu->total = memory.total;
    gpu->used = memory.used;
    gpu->used_known = true;
    gpu->asked_ns = UINT64_MAX;
    return true;
}

/* Sets the name, UUID, PCI address and memory of the device. False: the library can no longer tell
 * its UUID or PCI address, for example after a fault of the device. */
static bool read_device(device_handle device, struct gpu *gpu) {
    char uuid[96];
    struct address address;
    if (library.nvmlDeviceGetUUID(device, uuid, sizeof uuid) != 0 ||
        library.nvmlDeviceGetPciInfo_v3(device, &address) != 0)
        return false;
    read_uuid(uuid, gpu->uuid);
    gpu_bus_id(address.text, gpu->bus_id, sizeof gpu->bus_id);
    library.nvmlDeviceGetName(device, gpu->name, sizeof gpu->name);
    read_memory(device, gpu);
    return true;
}

size_t management_devices(struct gpu *gpus, size_t most) {
    unsigned count = 0;
    size_t found = 0;
    if (!open_library() || library.nvmlDeviceGetCount_v2(&count) != 0)
        return 0;
    for (unsigned i = 0; i < count && found < most; i++) {
        device_handle device;
        gpus[found] = (struct gpu){.number = (int)i};
        found += library.nvmlDeviceGetHandleByIndex_v2(i, &device) == 0 &&
                 read_device(device, &gpus[found]);
    }
    return found;
}

bool management_part(struct gpu *gpu) {
    char text[GPU_UUID_TEXT];
    device_handle device;
    gpu_uuid(gpu->uuid, text, sizeof text);
    memcpy(text, "MIG", 3);
    if (!open_library() || library.nvmlDeviceGetHandleByUUID(text, &device) != 0)
        return false;
    return read_memory(device, gpu);
}
