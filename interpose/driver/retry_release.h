/*
 * Giving memory and addresses back to the driver: asked again a few times if it refuses, since
 * nobody would ask later. What is refused each time is lost until the process ends. No driver is
 * known to refuse; tests do.
 *
 * The calling thread's captures are relaxed. Thread-safe.
 */
#ifndef BFC_INTERPOSE_RETRY_RELEASE_H
#define BFC_INTERPOSE_RETRY_RELEASE_H

#include "interpose/driver/driver.h"

CUresult bfc_retry_release(const struct bfc_driver *driver, CUmemGenericAllocationHandle page);
CUresult bfc_retry_unmap(const struct bfc_driver *driver, CUdeviceptr start, size_t bytes);
CUresult bfc_retry_free_addresses(const struct bfc_driver *driver, CUdeviceptr start, size_t bytes);

#endif
