/*
 * Spilling (BFC_SPILL): host memory in place of device memory, for what does not fit on the device.
 *
 * Each context that needs it has a second arena, with a pool, fences and counters of its own, whose
 * upstream is host memory (host_memory.h). So a spilled block is pooled like any other: the same
 * frees, fences, captures, look-ups. What differs:
 *
 * - It is used only after the device has refused, and all its pools together take at most
 * BFC_SPILL.
 * - What is free and ready goes back to the host soon, by a thread that is there for nothing else:
 *   the driver's call may wait for all work of the context, as long as it lasts. The next
 *   allocation asks the device again.
 * - Giving host memory back need not wait for anything, unlike a free of device memory. So nothing
 *   goes back before its fence is complete, however much memory is lacking.
 * - No pending block is handed out: in mode ordered such an arena is lazy.
 *
 * Blocks in use do not move. Thread-safe; no lock is held across a driver call.
 */
#ifndef BFC_INTERPOSE_SPILL_H
#define BFC_INTERPOSE_SPILL_H

#include "interpose/reuse/call.h"

/* Whether BFC_SPILL is so large. */
bool bfc_spill_may_serve(const struct bfc_call *call);

/*
 * Serves a call for which the arena of its context has found no memory: then the call's arena is
 * that of host memory, valid until the thread's next call here or of bfc_arena_of. False: it cannot
 * be served.
 */
bool bfc_spill_serve(struct bfc_call *call);

/* After a free (`freed` of struct bfc_feature): host memory that is ready, or will be, is left to a
 * thread of the library's, which is woken. */
void bfc_spill_freed(struct bfc_arena *arena, CUdeviceptr pointer, CUresult result, bool may_wait);

#endif
