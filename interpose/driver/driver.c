/* Looks up the real driver's functions, once, and makes them known to all threads. */
#include "interpose/driver/driver.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "interpose/host/c_library.h"

const struct bfc_driver *bfc_driver_found;

static void find_calls(struct bfc_driver *calls, const struct link_map *library) {
#define FIND(name, ...) *(void **)&calls->name = bfc_object_function(library, #name, NULL);
    BFC_HOOKED_CALLS(FIND)
    BFC_SUBMISSION_CALLS(FIND)
    BFC_AWAKE_CALLS(FIND)
    BFC_USED_CALLS(FIND)
#undef FIND
    calls->can_pool = calls->cuMemAlloc_v2 && calls->cuMemFree_v2 && calls->cuCtxGetCurrent &&
                      calls->cuCtxPushCurrent_v2 && calls->cuCtxPopCurrent_v2 &&
                      calls->cuCtxGetDevice && calls->cuCtxSynchronize &&
                      calls->cuDeviceTotalMem_v2;
    calls->can_page = calls->cuMemAddressReserve && calls->cuMemAddressFree && calls->cuMemCreate &&
                      calls->cuMemRelease && calls->cuMemMap && calls->cuMemUnmap &&
                      calls->cuMemSetAccess && calls->cuMemGetAllocationGranularity &&
                      calls->cuDeviceGetAttribute && calls->cuThreadExchangeStreamCaptureMode;
    calls->can_share_pages = calls->can_page && calls->cuMemExportToShareableHandle &&
                             calls->cuMemImportFromShareableHandle &&
                             calls->cuMemGetAllocationPropertiesFromHandle;
    calls->can_fence = calls->cuCtxRecordEvent && calls->cuCtxWaitEvent && calls->cuEventCreate &&
                       calls->cuEventQuery && calls->cuEventSynchronize &&
                       calls->cuThreadExchangeStreamCaptureMode;
}

static struct bfc_driver driver; /* the real driver's functions; a process has one driver */

/* Stores the functions that the first thread has looked up. If a second thread looks them up at the
 * same time, its result is dropped: the first thread may have redirected the driver's symbol table
 * already, so that the second one found the library's hooks in place of the driver's functions. */
static const struct bfc_driver *write_once(const struct bfc_driver *calls) {
    static bool writing;
    static const struct bfc_driver *written;
    if (!bfc_exchange_acquire(&writing, true)) {
        driver = *calls;
        bfc_store_release(&written, &driver);
    }
    const struct bfc_driver *result;
    unsigned tries = 0;
    while (!(result = bfc_load_acquire(&written)))
        bfc_back_off(&tries);
    return result;
}

const struct bfc_driver *bfc_driver_read(const struct link_map *library) {
    struct bfc_driver calls = {0};
    find_calls(&calls, library);
    return write_once(&calls);
}

void bfc_driver_publish(const struct bfc_driver *read, bool can_pool) {
    if (!can_pool)
        bfc_store_relaxed(&driver.can_pool, false);
    bfc_store_release(&bfc_driver_found, read);
}

static const struct bfc_driver *(*finder)(
    void); /* atomic: the function that searches for a loaded driver */

void bfc_driver_set_finder(const struct bfc_driver *(*find)(void)) {
    bfc_store_release(&finder, find);
}

const struct bfc_driver *bfc_driver_find(void) {
    const struct bfc_driver *(*find)(void) = bfc_load_acquire(&finder);
    return find ? find() : NULL;
}

/* Error codes that older versions of cuda.h do not define. */
enum {
    ERROR_CONTAINED = 226,
    ERROR_TENSOR_MEMORY_LEAK = 721,
    ERROR_MPS_CLIENT_TERMINATED = 810,
    ERROR_EXTERNAL_DEVICE = 911,
};

bool bfc_driver_is_fatal(CUresult result) {
    switch ((int)result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case ERROR_TENSOR_MEMORY_LEAK:
    case ERROR_MPS_CLIENT_TERMINATED:
    case ERROR_EXTERNAL_DEVICE:
        return true;
    default:
        return false;
    }
}
