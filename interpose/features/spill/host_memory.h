/* Host memory that devices can access. It is pinned, mapped and portable, so that every context of
 * the process reaches it by the same address. The calls are made in the current context, and only
 * where cuMemAlloc and cuMemFree are allowed. Thread-safe. */
#ifndef BFC_INTERPOSE_HOST_MEMORY_H
#define BFC_INTERPOSE_HOST_MEMORY_H

#include "interpose/arena/state.h"

/* Whether the driver and the device can map host memory. */
bool bfc_host_memory_can_be_had(const struct bfc_driver *driver, CUdevice device);

/* Takes host memory; `arena` and `is_first` are ignored. On failure `why` names the reason, and the
 * result is CUDA_ERROR_OUT_OF_MEMORY, or the driver's error if the context has failed. */
CUresult bfc_host_memory_take(const struct bfc_driver *driver, const struct bfc_arena *arena,
                              uint64_t bytes, bool is_first, CUdeviceptr *pointer,
                              const char **why);

/* Gives back host memory that no work uses any more, so that the call need not wait. */
CUresult bfc_host_memory_give(const struct bfc_driver *driver, CUdeviceptr pointer);

/*
 * Host memory of contexts that have ended. Pinned memory may outlive its context or go with it,
 * which is documented nowhere. So each region's buffer id, which the driver never assigns twice, is
 * noted before the context's end; if the driver still knows the id afterwards, the memory is freed.
 * Until then it counts against BFC_SPILL.
 */
extern unsigned bfc_host_left_slot;

/*
 * These are called through struct bfc_feature. bfc_host_left_note lists the regions of a context
 * before its end. After the end, bfc_host_left_add keeps them for bfc_host_left_collect; if the
 * context has not ended, bfc_host_left_forget drops the list. If the host has no memory for the
 * list, the regions are never freed.
 */
void bfc_host_left_note(const struct bfc_driver *driver, CUcontext context);
void bfc_host_left_add(CUcontext context);
void bfc_host_left_forget(const struct bfc_driver *driver, CUcontext context);
void bfc_host_left_arena_freed(struct bfc_arena *arena);

/* Frees host memory of contexts that have ended, unless a capture is under way. A context should be
 * current, since the driver may not answer without one; memory for which it does not answer is
 * tried again the next time. */
void bfc_host_left_collect(const struct bfc_driver *driver);

bool bfc_host_left_is_there(void);

#endif
