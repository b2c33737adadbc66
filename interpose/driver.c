/* The real driver: found once, by the loader's own record of what is loaded. */
#include "interpose/driver.h"

#include <dlfcn.h>
#include <stdatomic.h>

#include "interpose/real_dl.h"

static _Atomic(const struct bfc_driver *) found;

static void find_calls(struct bfc_driver *driver, void *library) {
#define FIND(name, arguments) *(void **)&driver->name = bfc_real_dlsym(library, #name);
    BFC_HOOKED_CALLS(FIND)
    BFC_USED_CALLS(FIND)
#undef FIND
}

/*
 * The loader tells whether the driver is there (interposing rule: it is opened RTLD_LOCAL, so
 * RTLD_NEXT would not find it). Two threads may find it at once: both then write the same values.
 */
static const struct bfc_driver *find_driver(void) {
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
        atomic_store_explicit(&found, &driver, memory_order_release);
    }
    const struct bfc_driver *result;
    while (!(result = atomic_load_explicit(&found, memory_order_acquire)))
        ;
    return result;
}

const struct bfc_driver *bfc_driver(void) {
    const struct bfc_driver *driver = atomic_load_explicit(&found, memory_order_acquire);
    return driver ? driver : find_driver();
}

bool bfc_driver_can_pool(const struct bfc_driver *driver) {
    return driver->cuMemAlloc_v2 && driver->cuMemFree_v2 && driver->cuCtxGetCurrent &&
           driver->cuCtxPushCurrent_v2 && driver->cuCtxPopCurrent_v2 && driver->cuCtxGetDevice &&
           driver->cuCtxSynchronize && driver->cuDeviceTotalMem_v2;
}
