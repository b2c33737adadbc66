// A driver whose device is soon full: a call past the pool needs nearly all of it, and keeps
// nothing.
#include <cuda.h>
#include <string.h>

#include "interpose/driver/hooked_calls.h"

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

EXPORT(cuDevicePrimaryCtxRetain, (void **context, int device)) {
    *context = &the_context;
    return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
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
NOTHING(cuCtxSetCurrent)
NOTHING(cuCtxPushCurrent_v2)
NOTHING(cuCtxPopCurrent_v2)
NOTHING(cuCtxSynchronize)

// Once for dlsym, once for cuGetProcAddress, whose pointers need not be the same.
#define NEEDS(name)                                                                                \
    static int need_##name(void) {                                                                 \
        return needed > device_bytes - used ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;             \
    }                                                                                              \
    EXPORT(name, (void)) {                                                                         \
        return need_##name();                                                                      \
    }
#define NEEDY(name, ...) NEEDS(name)
BFC_BYPASS_CALLS(NEEDY)
BFC_INCIDENTAL_CALLS(NEEDY)
#undef NEEDY

static const struct {
    const char *symbol;
    int (*call)(void);
} needy[] = {
#define NEEDY(name, ...) {#name, need_##name},
    BFC_BYPASS_CALLS(NEEDY) BFC_INCIDENTAL_CALLS(NEEDY)};

static const struct {
    const char *symbol;
    int version;
} all[] = {
#define BFC_CALL(symbol, version, need) {#symbol, version},
#include "interpose/driver/calls.inc"
};

// Is the symbol the name with these endings?
static int is_of(const char *symbol, const char *name, const char *twin) {
    size_t length = strlen(name);
    if (strncmp(symbol, name, length) != 0)
        return 0;
    symbol += length;
    if (strncmp(symbol, "_v", 2) == 0)
        symbol += 2 + strspn(symbol + 2, "0123456789");
    return strcmp(symbol, twin) == 0;
}

static int find(const char *name, void **entry, int version, unsigned long long flags) {
    const char *twin = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM ? "_ptsz" : "";
    size_t best = 0, found = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (is_of(all[i].symbol, name, twin) && all[i].version <= version &&
            (!found || all[i].version > all[best].version)) {
            best = i;
            found = 1;
        }
    for (size_t i = 0; found && i < sizeof needy / sizeof *needy; i++)
        if (strcmp(needy[i].symbol, all[best].symbol) == 0) {
            *entry = __extension__(void *) needy[i].call;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

EXPORT(cuGetProcAddress, (const char *name, void **entry, int version, unsigned long long flags)) {
    return find(name, entry, version, flags);
}

EXPORT(cuGetProcAddress_v2,
       (const char *name, void **entry, int version, unsigned long long flags, int *status)) {
    (void)status;
    return find(name, entry, version, flags);
}
