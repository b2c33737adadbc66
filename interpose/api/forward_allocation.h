/* Allocations that the driver serves in a pool's place. Thread-safe. */
#ifndef BFC_INTERPOSE_FORWARD_ALLOCATION_H
#define BFC_INTERPOSE_FORWARD_ALLOCATION_H

#include "interpose/arena/arena.h"

/* Calls the driver's cuMemAlloc, and returns its result. If the driver is out of memory, the pools
 * give back what they cache, and the call is made again. It is made only once if `reason` is
 * BFC_FORWARD_TOO_LARGE: the device is smaller than such a request. */
CUresult bfc_forward_allocation(const struct bfc_driver *driver, CUdeviceptr *pointer, size_t bytes,
                                enum bfc_forward_reason reason);

/* Counts an allocation that the driver is to serve against BFC_LIMIT. False: it does not fit. */
bool bfc_forward_charge(struct bfc_arena *arena, size_t bytes);

/* Does what bfc_forward_allocation does, in the arena's context, and counts the bytes against
 * BFC_LIMIT as if the pool had grown. */
CUresult bfc_forward_within_limit(const struct bfc_driver *driver, struct bfc_arena *arena,
                                  CUdeviceptr *pointer, size_t bytes,
                                  enum bfc_forward_reason reason);

#endif
