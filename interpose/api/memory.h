/*
 * A program's memory calls: answered by the pool where possible, by the driver where necessary.
 *
 * Each function has the driver's own signature, result and thread-safety. bfc_allocate and bfc_free
 * find the driver themselves when they need it; functions with an argument `driver` must not be
 * given NULL.
 */
#ifndef BFC_INTERPOSE_MEMORY_H
#define BFC_INTERPOSE_MEMORY_H

#include "interpose/driver/driver.h"
#include "layout/segment.h"

#include <stdbool.h>

CUresult bfc_allocate(CUdeviceptr *pointer, size_t bytes);
CUresult bfc_free(CUdeviceptr pointer);
/*
 * bfc_allocate_hit and bfc_free_hit serve cudaMalloc and cudaFree before the runtime is entered, if
 * a pool can do so at once. That must be the pool that the thread used last, its context must have
 * the id `context`, and that context must be current. (A free in mode lazy or ordered only needs
 * some current context.) Otherwise they return false, and so they do if no free block fits or the
 * process is in an unusual state, such as a capture; then nothing was changed or counted.
 * bfc_free_hit returns true also for a block of the pool that could not be freed, and stores the
 * error in `result`.
 */
bool bfc_allocate_hit(CUdeviceptr *pointer, size_t bytes, unsigned long long context);
bool bfc_free_hit(CUdeviceptr pointer, unsigned long long context, CUresult *result);

/* From now on, this thread's bfc_free of `pointer` frees nothing and returns `result`, so that the
 * runtime's cudaFree reports an error that the library has found. A call with a `pointer` of 0
 * makes the thread's bfc_free work as usual again. */
void bfc_free_answered(CUdeviceptr pointer, CUresult result);

CUresult bfc_free_async(const struct bfc_driver *driver, CUdeviceptr pointer, CUstream stream,
                        bool per_thread);
CUresult bfc_free_host(const struct bfc_driver *driver, void *memory);
CUresult bfc_memory_info(const struct bfc_driver *driver, size_t *free_bytes, size_t *total_bytes);

CUresult bfc_allocate_pitched(const struct bfc_driver *driver, CUdeviceptr *pointer, size_t *pitch,
                              size_t width, size_t height, unsigned element);

/* Counts an allocation that did not come from a pool, so that bfcstat can show why little of a job
 * is pooled. `start` is what the call returned: an address or a handle. */
void bfc_count_past_pool(enum bfc_bypass_kind kind, uintptr_t start, size_t bytes);

/* Returns the bytes of an array without further mipmap levels; an extent of 0 counts as 1. */
size_t bfc_bytes_of_array(CUarray_format format, unsigned channels, size_t width, size_t height,
                          size_t depth);

#endif
