/*
 * What a program's memory calls come to: from the pool when it may, from the driver when it must.
 *
 * Each function has the driver's own signature, result and thread-safety. The first two find the
 * driver themselves, when they come to need it; the others are given it, and it is never NULL.
 */
#ifndef BFC_INTERPOSE_MEMORY_H
#define BFC_INTERPOSE_MEMORY_H

#include "interpose/driver.h"

CUresult bfc_allocate(CUdeviceptr *pointer, size_t bytes);
CUresult bfc_free(CUdeviceptr pointer);
CUresult bfc_free_async(const struct bfc_driver *driver, CUdeviceptr pointer, CUstream stream,
                        bool per_thread);
CUresult bfc_memory_info(const struct bfc_driver *driver, size_t *free_bytes, size_t *total_bytes);

#endif
