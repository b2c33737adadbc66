/* Giving back, asked again. */
#include "interpose/features/pages/insist.h"

enum { TRIES = 8 };

#define INSIST(call)                                                                               \
    CUresult result = CUDA_ERROR_UNKNOWN;                                                          \
    for (int i = 0; i < TRIES && result != CUDA_SUCCESS; i++)                                      \
        result = call;                                                                             \
    return result

CUresult bfc_insist_release(const struct bfc_driver *driver, CUmemGenericAllocationHandle page) {
    INSIST(driver->cuMemRelease(page));
}

CUresult bfc_insist_unmap(const struct bfc_driver *driver, CUdeviceptr start, size_t bytes) {
    INSIST(driver->cuMemUnmap(start, bytes));
}

CUresult bfc_insist_free_addresses(const struct bfc_driver *driver, CUdeviceptr start,
                                   size_t bytes) {
    INSIST(driver->cuMemAddressFree(start, bytes));
}
