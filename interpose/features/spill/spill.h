/*
 * Spilling (BFC_SPILL): host memory in place of device memory, for what does not fit on the device.
 *
 * Each context that needs it has a second arena, with a pool, fences and counters of its own, whose
 * upstream is host memory. So a spilled block is pooled like any other. The differences:
 *
 * - Every allocation asks the device first, and uses host memory only after the device has refused;
 *   all pools of host memory together take at most BFC_SPILL.
 * - Idle regions soon go back to the host. A thread of the library gives them back, not a thread of
 *   the program, since the driver's call may wait for all work of the context.
 * - Giving host memory back need not wait for the device, unlike a free of device memory. So
 *   nothing goes back before the work that used it is complete, however much memory is lacking.
 * - No freed block is handed out before the work that used it is complete, as in free mode `lazy`,
 *   even if the free mode is `ordered`.
 *
 * Blocks in use do not move. Thread-safe; no lock is held across a driver call.
 */
#ifndef BFC_INTERPOSE_SPILL_H
#define BFC_INTERPOSE_SPILL_H

#include "interpose/reuse/last_resort.h"

/* Whether an allocation may be served from host memory: it is no larger than BFC_SPILL, and its
 * caller does not require a block of device memory. */
bool bfc_spill_may_serve(const struct bfc_call *call);

/* Serves an allocation from host memory. True: `call->arena` is now the arena of host memory, which
 * is valid until the thread next calls this function or bfc_arena_of. */
bool bfc_spill_serve(struct bfc_call *call);

/* Called after each free, as `freed` of struct bfc_feature: wakes the thread that gives host memory
 * back, if there may be something to give back. */
void bfc_spill_freed(struct bfc_arena *arena, CUdeviceptr pointer, CUresult result, bool may_wait);

#endif
