/*
 * Calls past the pool that need device memory (interpose/driver/calls_retried_when_full.h).
 *
 * Allocations among them are counted, so that a job in which little is pooled shows why. When the
 * device is full, the pool gives back what it only caches and the call is made again.
 */
#ifndef BFC_INTERPOSE_PASS_THROUGH_H
#define BFC_INTERPOSE_PASS_THROUGH_H

#include <cuda.h>
#include <stdint.h>

#include "layout/segment.h"

/* Counts an allocation past the pool that succeeded. `start` is what the call returned: an address
 * or a handle. */
void bfc_count_past_pool(enum bfc_bypass_kind kind, uintptr_t start, size_t bytes);

/* The bytes of an array's first level; an extent of 0 counts as 1. */
size_t bfc_bytes_of_array(CUarray_format format, unsigned channels, size_t width, size_t height,
                          size_t depth);

#endif
