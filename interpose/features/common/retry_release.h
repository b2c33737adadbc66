/*
 * Gives memory and addresses back to the driver, and tries a few times if the driver refuses, since
 * nothing tries again later. What the driver refuses each time is lost until the process ends. No
 * driver is known to refuse, but the tests' stand-in can.
 *
 * The caller has put the thread into relaxed capture mode. Thread-safe.
 */
#ifndef BFC_INTERPOSE_RETRY_RELEASE_H
#define BFC_INTERPOSE_RETRY_RELEASE_H

#include "interpose/driver/driver.h"

static inline CUresult bfc_retry_release(const struct bfc_driver *driver,
                                         CUmemGenericAllocationHandle page) {
    BFC_TRY_HARD(result, driver->cuMemRelease(page));
    return result;
}

static inline CUresult bfc_retry_unmap(const struct bfc_driver *driver, CUdeviceptr start,
                                       size_t bytes) {
    BFC_TRY_HARD(result, driver->cuMemUnmap(start, bytes));
    return result;
}

static inline CUresult bfc_retry_free_addresses(const struct bfc_driver *driver, CUdeviceptr start,
                                                size_t bytes) {
    BFC_TRY_HARD(result, driver->cuMemAddressFree(start, bytes));
    return result;
}

#endif
