/* Releases that are tried several times. */
#include "interpose/driver/retry_release.h"

enum { TRIES = 8 };

#define UNTIL_ACCEPTED(call)                                                                       \
    CUresult result = CUDA_ERROR_UNKNOWN;                                                          \
    for (int i = 0; i < TRIES && result != CUDA_SUCCESS; i++)                                      \
        result = call;                                                                             \
    return result

CUresult bfc_retry_release(const struct bfc_driver *driver, CUmemGenericAllocationHandle page) {
    UNTIL_ACCEPTED(driver->cuMemRelease(page));
}

CUresult bfc_retry_unmap(const struct bfc_driver *driver, CUdeviceptr start, size_t bytes) {
    UNTIL_ACCEPTED(driver->cuMemUnmap(start, bytes));
}

CUresult bfc_retry_free_addresses(const struct bfc_driver *driver, CUdeviceptr start,
                                  size_t bytes) {
    UNTIL_ACCEPTED(driver->cuMemAddressFree(start, bytes));
}
