/*
 * Blocks that the driver has allocated instead of the pool (BFC_BYPASS_ABOVE and others). They
 * count against BFC_LIMIT, as the pool's regions do, until they are freed or their context ends.
 * Thread-safe.
 */
#ifndef BFC_INTERPOSE_BYPASSED_H
#define BFC_INTERPOSE_BYPASSED_H

#include "interpose/arena/state.h"

/* Counts a block that is about to be allocated against the limit. False: it would exceed the limit,
 * and `lacks` is set to how many bytes must be freed first. Without a limit nothing is counted. */
bool bfc_bypassed_charge(struct bfc_arena *arena, uint64_t bytes, uint64_t *lacks);

/* Records the address of a block that bfc_bypassed_charge has counted. If `pointer` is 0, the
 * driver has not allocated the block, so it no longer counts. */
void bfc_bypassed_note(struct bfc_arena *arena, CUdeviceptr pointer, uint64_t bytes);

/* To be called when the driver has freed the block at `pointer`, of which there may be no
 * record. */
void bfc_bypassed_freed(CUdeviceptr pointer);

#endif
