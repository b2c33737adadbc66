// The part of NVIDIA's management library that is modelled. Facts of its documentation: codes,
// structures, names.
#ifndef SIM_NVML_H
#define SIM_NVML_H

#include <stddef.h>

typedef enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_UNKNOWN = 999
} nvmlReturn_t;

typedef struct nvml_device *nvmlDevice_t;

typedef struct {
    unsigned long long total, free, used; // bytes
} nvmlMemory_t;

typedef struct {
    unsigned version;
    unsigned long long total, reserved, free, used; // bytes
} nvmlMemory_v2_t;

typedef struct {
    char legacy[16];
    unsigned domain, bus, device, vendor, subsystem;
    char bus_id[32];
} nvmlPciInfo_t;

#endif
