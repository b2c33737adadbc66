/*
 * Blocks that the driver has handed out in place of the pool (BFC_BYPASS_ABOVE and others): with
 * BFC_LIMIT they count as the pool's regions do, until they are freed or their context ends.
 * Thread-safe.
 */
#ifndef BFC_INTERPOSE_BYPASSED_H
#define BFC_INTERPOSE_BYPASSED_H

#include "interpose/arena/state.h"

/* Charges a block that is about to be allocated to the limit. False: the limit has no room for it,
 * and `lacks` is set to how many bytes must be freed first. An arena without a limit counts
 * nothing. */
bool bfc_bypassed_charge(struct bfc_arena *arena, uint64_t bytes, uint64_t *lacks);

/* Records the address of a block that was charged before. If `pointer` is 0, its allocation has
 * failed, and the charge is taken back. */
void bfc_bypassed_note(struct bfc_arena *arena, CUdeviceptr pointer, uint64_t bytes);

/* To be called when the driver has freed the block at `pointer`, whether there is a record of it or
 * not. */
void bfc_bypassed_freed(CUdeviceptr pointer);

#endif
