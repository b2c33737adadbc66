/*
 * What is tried for an allocation that its pool could not serve, before the program is told that
 * there is no memory (docs/internals/out-of-memory.md): the process's other contexts, and what the
 * features offer (struct bfc_resort), in the order of enum bfc_rung. The pool's own last resorts,
 * the first rung, are behind it by then (pool/regions/last_resorts.c).
 *
 * Thread-safe; no lock is held.
 */
#ifndef BFC_INTERPOSE_LAST_RESORT_H
#define BFC_INTERPOSE_LAST_RESORT_H

#include "interpose/reuse/call.h"

/*
 * Tries those that BFC_LAST_RESORT leaves in force until the allocation is served; only for
 * a status of BFC_OUT_OF_MEMORY. Returns CUDA_SUCCESS, or the error; the status is that of the last
 * time that the pool was asked.
 */
CUresult bfc_last_resort(struct bfc_call *call);

/* The program is told that there is no memory: counts it, notes the event, and says why. */
void bfc_last_resort_failed(const struct bfc_call *call);

#endif
