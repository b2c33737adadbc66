/* The hooks: exported wrappers without logic, and the tables that lead programs to them. */
#include "interpose/hooks.h"

#include <string.h>

#include "interpose/domain.h"
#include "interpose/memory.h"

/*
 * A hook is a local function. A program that links the driver is bound to it by an export of the
 * driver's name, with the hidden version that exports.map explains. The tables hold the local one:
 * the address is the same, and no other library's symbol can get in between.
 */
#define HOOK(name, arguments)                                                                      \
    CUresult bfc_export_##name arguments                                                           \
        __attribute__((visibility("default"), alias("hook_" #name)));                              \
    __asm__(".symver bfc_export_" #name ", " #name "@BFC_BOUND");                                  \
    CUresult hook_##name arguments __asm__("hook_" #name);                                         \
    __attribute__((visibility("hidden"))) CUresult hook_##name arguments

/*
 * A program that binds to our symbol though it has no driver, or one without the call, is told so.
 * (A program that was given the hook by a look-up always has both.)
 */
#define FIND_DRIVER(driver, call)                                                                  \
    const struct bfc_driver *driver = bfc_driver();                                                \
    if (!driver || !driver->call)                                                                  \
    return driver ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_NOT_INITIALIZED

HOOK(cuMemAlloc_v2, (CUdeviceptr * pointer, size_t bytes)) {
    FIND_DRIVER(driver, cuMemAlloc_v2);
    return bfc_allocate(driver, pointer, bytes);
}

HOOK(cuMemFree_v2, (CUdeviceptr pointer)) {
    FIND_DRIVER(driver, cuMemFree_v2);
    return bfc_free(driver, pointer);
}

HOOK(cuMemFreeAsync, (CUdeviceptr pointer, CUstream stream)) {
    FIND_DRIVER(driver, cuMemFreeAsync);
    return bfc_free_async(driver, pointer, stream, driver->cuMemFreeAsync);
}

HOOK(cuMemFreeAsync_ptsz, (CUdeviceptr pointer, CUstream stream)) {
    FIND_DRIVER(driver, cuMemFreeAsync_ptsz);
    return bfc_free_async(driver, pointer, stream, driver->cuMemFreeAsync_ptsz);
}

HOOK(cuMemGetInfo_v2, (size_t * free_bytes, size_t *total_bytes)) {
    FIND_DRIVER(driver, cuMemGetInfo_v2);
    return bfc_memory_info(driver, free_bytes, total_bytes);
}

HOOK(cuIpcGetMemHandle, (CUipcMemHandle * handle, CUdeviceptr pointer)) {
    FIND_DRIVER(driver, cuIpcGetMemHandle);
    return bfc_export_handle(driver, handle, pointer);
}

HOOK(cuCtxDestroy, (CUcontext context)) {
    FIND_DRIVER(driver, cuCtxDestroy);
    return bfc_context_destroy(context, driver->cuCtxDestroy);
}

HOOK(cuCtxDestroy_v2, (CUcontext context)) {
    FIND_DRIVER(driver, cuCtxDestroy_v2);
    return bfc_context_destroy(context, driver->cuCtxDestroy_v2);
}

HOOK(cuDevicePrimaryCtxRelease, (CUdevice device)) {
    FIND_DRIVER(driver, cuDevicePrimaryCtxRelease);
    return bfc_primary_release(driver, device, driver->cuDevicePrimaryCtxRelease);
}

HOOK(cuDevicePrimaryCtxRelease_v2, (CUdevice device)) {
    FIND_DRIVER(driver, cuDevicePrimaryCtxRelease_v2);
    return bfc_primary_release(driver, device, driver->cuDevicePrimaryCtxRelease_v2);
}

HOOK(cuDevicePrimaryCtxReset, (CUdevice device)) {
    FIND_DRIVER(driver, cuDevicePrimaryCtxReset);
    return bfc_primary_reset(device, driver->cuDevicePrimaryCtxReset);
}

HOOK(cuDevicePrimaryCtxReset_v2, (CUdevice device)) {
    FIND_DRIVER(driver, cuDevicePrimaryCtxReset_v2);
    return bfc_primary_reset(device, driver->cuDevicePrimaryCtxReset_v2);
}

HOOK(cuGetProcAddress, (const char *name, void **entry, int version, bfc_cuda_flags flags)) {
    FIND_DRIVER(driver, cuGetProcAddress);
    CUresult result = driver->cuGetProcAddress(name, entry, version, flags);
    if (result == CUDA_SUCCESS && name && entry)
        *entry = bfc_replace_entry(*entry, name, version, flags);
    return result;
}

HOOK(cuGetProcAddress_v2,
     (const char *name, void **entry, int version, bfc_cuda_flags flags, int *status)) {
    FIND_DRIVER(driver, cuGetProcAddress_v2);
    CUresult result = driver->cuGetProcAddress_v2(name, entry, version, flags, status);
    if (result == CUDA_SUCCESS && name && entry)
        *entry = bfc_replace_entry(*entry, name, version, flags);
    return result;
}

static const struct bfc_hook hooks[] = {
#define ROW(name, arguments)                                                                       \
    {#name, __extension__(void *) hook_##name, offsetof(struct bfc_driver, name)},
    BFC_HOOKED_CALLS(ROW)
#undef ROW
};
enum { HOOKS = sizeof hooks / sizeof hooks[0] };

void *bfc_hook_real(const struct bfc_driver *driver, const struct bfc_hook *hook) {
    return *(void *const *)((const char *)driver + hook->real);
}

const struct bfc_hook *bfc_hook_of_symbol(const char *name) {
    for (size_t i = 0; i < HOOKS; i++)
        if (strcmp(hooks[i].symbol, name) == 0)
            return &hooks[i];
    return NULL;
}

/*
 * The names by which cuGetProcAddress knows the same entries, should its pointers differ from
 * dlsym's: the first CUDA version in which the name means this variant, and the last.
 */
struct requested {
    const char *name;
    int first, last;
    const char *symbol;
};

static const struct requested requested[] = {
    {"cuMemAlloc", 3020, 0, "cuMemAlloc_v2"},
    {"cuMemFree", 3020, 0, "cuMemFree_v2"},
    {"cuMemGetInfo", 3020, 0, "cuMemGetInfo_v2"},
    {"cuMemFreeAsync", 11020, 0, "cuMemFreeAsync"},
    {"cuIpcGetMemHandle", 4010, 0, "cuIpcGetMemHandle"},
    {"cuCtxDestroy", 4000, 0, "cuCtxDestroy_v2"},
    {"cuCtxDestroy", 2000, 3999, "cuCtxDestroy"},
    {"cuDevicePrimaryCtxRelease", 11000, 0, "cuDevicePrimaryCtxRelease_v2"},
    {"cuDevicePrimaryCtxRelease", 7000, 10999, "cuDevicePrimaryCtxRelease"},
    {"cuDevicePrimaryCtxReset", 11000, 0, "cuDevicePrimaryCtxReset_v2"},
    {"cuDevicePrimaryCtxReset", 7000, 10999, "cuDevicePrimaryCtxReset"},
    {"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"},
    {"cuGetProcAddress", 11030, 11999, "cuGetProcAddress"},
};

static const struct bfc_hook *find_by_request(const char *name, int version, bfc_cuda_flags flags) {
    bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    for (size_t i = 0; i < sizeof requested / sizeof requested[0]; i++) {
        const struct requested *row = &requested[i];
        if (strcmp(row->name, name) == 0 && version >= row->first &&
            (row->last == 0 || version <= row->last))
            return bfc_hook_of_symbol(per_thread && strcmp(name, "cuMemFreeAsync") == 0
                                          ? "cuMemFreeAsync_ptsz"
                                          : row->symbol);
    }
    return NULL;
}

void *bfc_replace_entry(void *real, const char *name, int version, bfc_cuda_flags flags) {
    const struct bfc_driver *driver = bfc_driver();
    if (!real || !driver)
        return real;
    for (size_t i = 0; i < HOOKS; i++)
        if (real == bfc_hook_real(driver, &hooks[i]))
            return hooks[i].replacement;
    const struct bfc_hook *hook = find_by_request(name, version, flags);
    return hook && bfc_hook_real(driver, hook) ? hook->replacement : real;
}
