/* The real driver: found once, by the loader's own record of what is loaded. */
#include "interpose/driver.h"

#include <dlfcn.h>
#include <stdatomic.h>

#include "interpose/real_dl.h"

const struct bfc_driver *bfc_driver_found;

static void find_calls(struct bfc_driver *driver, void *library) {
#define FIND(name, arguments) *(void **)&driver->name = bfc_real_dlsym(library, #name);
    BFC_HOOKED_CALLS(FIND)
    BFC_USED_CALLS(FIND)
#undef FIND
#define FIND(name, kind, parameters, arguments, bytes)                                             \
    *(void **)&driver->name = bfc_real_dlsym(library, #name);
    BFC_BYPASS_CALLS(FIND)
#undef FIND
#define FIND(name, parameters, arguments) *(void **)&driver->name = bfc_real_dlsym(library, #name);
    BFC_NEEDY_CALLS(FIND)
#undef FIND
    driver->can_pool = driver->cuMemAlloc_v2 && driver->cuMemFree_v2 && driver->cuCtxGetCurrent &&
                       driver->cuCtxPushCurrent_v2 && driver->cuCtxPopCurrent_v2 &&
                       driver->cuCtxGetDevice && driver->cuCtxSynchronize &&
                       driver->cuDeviceTotalMem_v2;
    driver->can_mark = driver->cuCtxRecordEvent && driver->cuCtxWaitEvent &&
                       driver->cuEventCreate && driver->cuEventQuery &&
                       driver->cuEventSynchronize && driver->cuThreadExchangeStreamCaptureMode;
}

/*
 * The loader tells whether the driver is there (interposing rule: it is opened RTLD_LOCAL, so
 * RTLD_NEXT would not find it). Two threads may find it at once: both then write the same values.
 */
const struct bfc_driver *bfc_find_driver(void) {
    static struct bfc_driver driver;
    static atomic_flag writing = ATOMIC_FLAG_INIT;
    void *library = bfc_real_dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
    struct bfc_driver calls = {0};
    if (library)
        find_calls(&calls, library);
    bfc_forget_dl_error();
    if (!library)
        return NULL;
    if (!atomic_flag_test_and_set_explicit(&writing, memory_order_acquire)) {
        driver = calls;
        __atomic_store_n(&bfc_driver_found, &driver, __ATOMIC_RELEASE);
    }
    const struct bfc_driver *result;
    while (!(result = __atomic_load_n(&bfc_driver_found, __ATOMIC_ACQUIRE)))
        ;
    return result;
}

CUresult bfc_pop_context(const struct bfc_driver *driver) {
    CUcontext popped;
    CUresult result = driver->cuCtxPopCurrent_v2(&popped);
    return result == CUDA_SUCCESS ? result : driver->cuCtxPopCurrent_v2(&popped);
}
