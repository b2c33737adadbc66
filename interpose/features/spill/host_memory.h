/*
 * Host memory that the device reaches: pinned, mapped, portable, so that every context of the
 * process reaches it by the same address. The calls are of the current context, and allowed where
 * cuMemAlloc and cuMemFree are. Thread-safe.
 */
#ifndef BFC_INTERPOSE_HOST_MEMORY_H
#define BFC_INTERPOSE_HOST_MEMORY_H

#include "interpose/arena/state.h"

/* Whether the driver and the device have all that is needed. */
bool bfc_host_memory_can_be_had(const struct bfc_driver *driver, CUdevice device);

/*
 * Takes `bytes` of it. CUDA_ERROR_OUT_OF_MEMORY, and `why` says what is in the way, unless the
 * context is dead: then the driver's error.
 */
CUresult bfc_host_memory_take(const struct bfc_driver *driver, const struct bfc_arena *arena,
                              uint64_t bytes, bool is_first, CUdeviceptr *pointer,
                              const char **why);

/* Gives it back; the driver's error. Nothing may use it any more: the call need not wait. */
CUresult bfc_host_memory_give(const struct bfc_driver *driver, CUdeviceptr pointer);

#endif
