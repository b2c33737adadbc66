// A minimal libnvidia-ml.so.1: the simulated devices, their memory and their names, for programs
// that look at devices through it beside CUDA. Uses no driver. What a device has in use is known
// where SIM_SHARE tells it. Names that are missing here are not found by dlsym, as in an older
// library; links between devices are told to be missing. Thread-safe.
#include "sim/nvml/nvml.h"

#include "sim/base/limits.h"
#include "sim/base/options.h"
#include "sim/device/device.h"
#include "sim/device/share.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct nvml_device {
    struct sim_device device;
};

static struct nvml_device devices[SIM_MAX_DEVICES];
static atomic_int users; // nvmlInit less nvmlShutdown

static void open_devices(void) {
    sim_options_read();
    sim_share_open(sim_options.share);
    for (int i = 0; i < sim_options.installed; i++) {
        devices[i].device.place = i;
    }
}

static nvmlReturn_t begin(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_devices);
    atomic_fetch_add(&users, 1);
    return NVML_SUCCESS;
}

static nvmlReturn_t end(void) {
    if (atomic_load(&users) == 0) {
        return NVML_ERROR_UNINITIALIZED;
    }
    atomic_fetch_sub(&users, 1);
    return NVML_SUCCESS;
}

// An exported function: refused before nvmlInit.
#define NVML_CALL(symbol, parameters, answer)                                                      \
    __attribute__((visibility("default"))) nvmlReturn_t symbol parameters;                         \
    nvmlReturn_t symbol parameters {                                                               \
        return atomic_load(&users) == 0 ? NVML_ERROR_UNINITIALIZED : (answer);                     \
    }
// The same in an older and a newer form that differ in nothing here.
#define NVML_BOTH(symbol, parameters, answer)                                                      \
    NVML_CALL(symbol, parameters, answer) NVML_CALL(symbol##_v2, parameters, answer)
#define NVML_ALWAYS(symbol, parameters, answer)                                                    \
    __attribute__((visibility("default"))) nvmlReturn_t symbol parameters;                         \
    nvmlReturn_t symbol parameters {                                                               \
        return answer;                                                                             \
    }

NVML_ALWAYS(nvmlInit, (void), begin())
NVML_ALWAYS(nvmlInit_v2, (void), begin())
NVML_ALWAYS(nvmlInitWithFlags, (unsigned flags), ((void)flags, begin()))
NVML_ALWAYS(nvmlShutdown, (void), end())

__attribute__((visibility("default"))) const char *nvmlErrorString(nvmlReturn_t code);
const char *nvmlErrorString(nvmlReturn_t code) {
    switch (code) {
    case NVML_SUCCESS:
        return "Success";
    case NVML_ERROR_UNINITIALIZED:
        return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
        return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
        return "Not Supported";
    case NVML_ERROR_NOT_FOUND:
        return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
        return "Insufficient Size";
    case NVML_ERROR_UNKNOWN:
        break;
    }
    return "Unknown Error";
}

// ---- the system ----

static nvmlReturn_t put_text(char *out, unsigned size, const char *text) {
    if (out == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (strlen(text) >= size) {
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    memcpy(out, text, strlen(text) + 1);
    return NVML_SUCCESS;
}

static nvmlReturn_t put_number(unsigned *out, int number) {
    if (out == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *out = (unsigned)number;
    return NVML_SUCCESS;
}

NVML_CALL(nvmlSystemGetDriverVersion, (char *out, unsigned size), put_text(out, size, "580.0"))
NVML_CALL(nvmlSystemGetNVMLVersion, (char *out, unsigned size), put_text(out, size, "13.580.0"))
NVML_BOTH(nvmlSystemGetCudaDriverVersion, (int *version),
          put_number((unsigned *)version, sim_options.driver_version))

// ---- which devices there are ----

static nvmlReturn_t handle_of(nvmlDevice_t *out, long index) {
    if (out == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (index < 0 || index >= sim_options.installed) {
        return NVML_ERROR_NOT_FOUND;
    }
    *out = &devices[index];
    return NVML_SUCCESS;
}

static nvmlReturn_t handle_of_bus(nvmlDevice_t *out, const char *text) {
    unsigned domain = 0, bus = 0;
    if (text == NULL || sscanf(text, "%x:%x:", &domain, &bus) != 2) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    return handle_of(out, (long)bus - 1);
}

static bool known(const struct nvml_device *device) {
    return device >= devices && device < devices + sim_options.installed;
}

enum { UUID_TEXT = 41 };

// As cuDeviceGetUuid tells it.
static void write_uuid(const struct nvml_device *device, char text[UUID_TEXT]) {
    unsigned char b[16];
    sim_share_uuid(device->device.place, b);
    snprintf(text, UUID_TEXT,
             "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
}

static nvmlReturn_t handle_of_uuid(nvmlDevice_t *out, const char *wanted) {
    char text[UUID_TEXT];
    if (wanted == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    for (int i = 0; i < sim_options.installed; i++) {
        write_uuid(&devices[i], text);
        if (strcmp(text, wanted) == 0) {
            return handle_of(out, i);
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

NVML_BOTH(nvmlDeviceGetCount, (unsigned *count), put_number(count, sim_options.installed))
NVML_BOTH(nvmlDeviceGetHandleByIndex, (unsigned index, nvmlDevice_t *device),
          handle_of(device, index))
NVML_BOTH(nvmlDeviceGetHandleByPciBusId, (const char *text, nvmlDevice_t *device),
          handle_of_bus(device, text))
NVML_CALL(nvmlDeviceGetHandleByUUID, (const char *text, nvmlDevice_t *device),
          handle_of_uuid(device, text))

// ---- what a device tells ----

// A function of a device: refused for what is none.
#define NVML_DEVICE(symbol, parameters, answer)                                                    \
    NVML_CALL(symbol, parameters, !known(device) ? NVML_ERROR_INVALID_ARGUMENT : (answer))

static nvmlReturn_t put_uuid(char *out, unsigned size, const struct nvml_device *device) {
    char text[UUID_TEXT];
    write_uuid(device, text);
    return put_text(out, size, text);
}

static nvmlReturn_t put_pci(nvmlPciInfo_t *out, const struct nvml_device *device) {
    if (out == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    memset(out, 0, sizeof *out);
    out->bus = (unsigned)device->device.place + 1;
    snprintf(out->legacy, sizeof out->legacy, "0000:%02X:00.0", out->bus);
    snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", out->bus);
    return NVML_SUCCESS;
}

static unsigned long long used_of(const struct nvml_device *device) {
    return (unsigned long long)sim_share_others(&device->device) * SIM_PAGE;
}

static nvmlReturn_t put_memory(nvmlMemory_t *out, const struct nvml_device *device) {
    if (out == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    out->total = sim_options.memory / SIM_PAGE * SIM_PAGE;
    out->used = used_of(device);
    out->free = out->total - out->used;
    return NVML_SUCCESS;
}

static nvmlReturn_t put_memory_v2(nvmlMemory_v2_t *out, const struct nvml_device *device) {
    nvmlMemory_t plain = {0};
    if (out == NULL || out->version != (sizeof *out | 2u << 24)) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    put_memory(&plain, device);
    out->total = plain.total;
    out->reserved = 0;
    out->free = plain.free;
    out->used = plain.used;
    return NVML_SUCCESS;
}

static nvmlReturn_t put_capability(int *major, int *minor) {
    if (major == NULL || minor == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *major = 9;
    *minor = 0;
    return NVML_SUCCESS;
}

NVML_DEVICE(nvmlDeviceGetName, (nvmlDevice_t device, char *out, unsigned size),
            put_text(out, size, "Simulated GPU"))
NVML_DEVICE(nvmlDeviceGetUUID, (nvmlDevice_t device, char *out, unsigned size),
            put_uuid(out, size, device))
NVML_DEVICE(nvmlDeviceGetIndex, (nvmlDevice_t device, unsigned *index),
            put_number(index, device->device.place))
NVML_DEVICE(nvmlDeviceGetMinorNumber, (nvmlDevice_t device, unsigned *number),
            put_number(number, device->device.place))
NVML_DEVICE(nvmlDeviceGetPciInfo_v3, (nvmlDevice_t device, nvmlPciInfo_t *out),
            put_pci(out, device))
NVML_DEVICE(nvmlDeviceGetMemoryInfo, (nvmlDevice_t device, nvmlMemory_t *out),
            put_memory(out, device))
NVML_DEVICE(nvmlDeviceGetMemoryInfo_v2, (nvmlDevice_t device, nvmlMemory_v2_t *out),
            put_memory_v2(out, device))
NVML_DEVICE(nvmlDeviceGetCudaComputeCapability, (nvmlDevice_t device, int *major, int *minor),
            put_capability(major, minor))

// No process is listed, and no device has a link, a fabric or partitions.
#define NVML_NONE(symbol, parameters) NVML_DEVICE(symbol, parameters, NVML_ERROR_NOT_SUPPORTED)

NVML_DEVICE(nvmlDeviceGetComputeRunningProcesses,
            (nvmlDevice_t device, unsigned *count, void *processes),
            ((void)processes, put_number(count, 0)))
NVML_DEVICE(nvmlDeviceGetComputeRunningProcesses_v3,
            (nvmlDevice_t device, unsigned *count, void *processes),
            ((void)processes, put_number(count, 0)))
NVML_NONE(nvmlDeviceGetNvLinkState, (nvmlDevice_t device, unsigned link, unsigned *out))
NVML_NONE(nvmlDeviceGetNvLinkCapability,
          (nvmlDevice_t device, unsigned link, unsigned which, unsigned *out))
NVML_NONE(nvmlDeviceGetNvLinkRemoteDeviceType, (nvmlDevice_t device, unsigned link, unsigned *out))
NVML_NONE(nvmlDeviceGetNvLinkRemotePciInfo_v2,
          (nvmlDevice_t device, unsigned link, nvmlPciInfo_t *out))
NVML_NONE(nvmlDeviceGetFieldValues, (nvmlDevice_t device, int count, void *values))
NVML_NONE(nvmlDeviceGetGpuFabricInfo, (nvmlDevice_t device, void *out))
NVML_NONE(nvmlDeviceGetGpuFabricInfoV, (nvmlDevice_t device, void *out))
NVML_NONE(nvmlDeviceGetMigMode, (nvmlDevice_t device, unsigned *now, unsigned *later))
NVML_NONE(nvmlDeviceGetP2PStatus,
          (nvmlDevice_t device, nvmlDevice_t other, unsigned which, unsigned *out))
NVML_NONE(nvmlDeviceGetTopologyCommonAncestor,
          (nvmlDevice_t device, nvmlDevice_t other, unsigned *out))
