// A driver whose device is soon full: a call past the pool needs nearly all of it, and keeps
// nothing.
#include <cuda.h>

#include "interpose/bypass.h"

// Under other names here: the header has its own idea of their types.
#define EXPORT(name, parameters)                                                                   \
    __attribute__((visibility("default"))) int full_##name parameters __asm__(#name);              \
    int full_##name parameters

enum { REGIONS = 64 };
static const size_t device_bytes = (size_t)64 << 20, needed = (size_t)48 << 20;

static struct {
    CUdeviceptr start;
    size_t bytes;
} regions[REGIONS];
static size_t used;
static int the_context;

EXPORT(cuMemAlloc_v2, (CUdeviceptr * pointer, size_t bytes)) {
    static CUdeviceptr next = (CUdeviceptr)1 << 40;
    int i = 0;
    while (i < REGIONS && regions[i].bytes)
        i++;
    if (i == REGIONS || bytes > device_bytes - used)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pointer = regions[i].start = next;
    regions[i].bytes = bytes;
    used += bytes;
    next += (bytes + 0x1fffff) & ~(size_t)0x1fffff;
    return CUDA_SUCCESS;
}

EXPORT(cuMemFree_v2, (CUdeviceptr pointer)) {
    for (int i = 0; i < REGIONS; i++)
        if (regions[i].bytes && regions[i].start == pointer) {
            used -= regions[i].bytes;
            regions[i].bytes = 0;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

EXPORT(cuCtxGetCurrent, (void **context)) {
    *context = &the_context;
    return CUDA_SUCCESS;
}

EXPORT(cuCtxGetDevice, (int *device)) {
    *device = 0;
    return CUDA_SUCCESS;
}

EXPORT(cuDeviceTotalMem_v2, (size_t * bytes, int device)) {
    *bytes = device == 0 ? device_bytes : 0;
    return CUDA_SUCCESS;
}

#define NOTHING(name)                                                                              \
    EXPORT(name, (void)) {                                                                         \
        return CUDA_SUCCESS;                                                                       \
    }
NOTHING(cuInit)
NOTHING(fullDevice) // so that it is known
NOTHING(cuDevicePrimaryCtxRetain)
NOTHING(cuCtxSetCurrent)
NOTHING(cuCtxPushCurrent_v2)
NOTHING(cuCtxPopCurrent_v2)
NOTHING(cuCtxSynchronize)

#define NEEDS(name)                                                                                \
    EXPORT(name, (void)) {                                                                         \
        return needed > device_bytes - used ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;             \
    }
#define BYPASSED(name, kind, parameters, arguments, bytes) NEEDS(name)
#define NEEDY(name, parameters, arguments) NEEDS(name)
BFC_BYPASS_CALLS(BYPASSED)
BFC_NEEDY_CALLS(NEEDY)
