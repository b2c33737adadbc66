/*
 * What is tried for an allocation that its pool could not serve, before the program gets an
 * out-of-memory error (docs/internals/out-of-memory.md): the process's other contexts, and what the
 * features offer (struct bfc_resort), in the order of enum bfc_rung. The pool has tried its own
 * last resorts, the first rung, before (pool/regions/last_resorts.c).
 *
 * Thread-safe; no lock is held.
 */
#ifndef BFC_INTERPOSE_LAST_RESORT_H
#define BFC_INTERPOSE_LAST_RESORT_H

#include "interpose/reuse/call.h"

/*
 * Tries the resorts that BFC_LAST_RESORT leaves in force, until the allocation is served or its
 * status is not BFC_OUT_OF_MEMORY any more. Returns CUDA_SUCCESS, or the error. The call's status
 * is then the last answer of the pool.
 */
CUresult bfc_last_resort(struct bfc_call *call);

/* To be called before the program gets an out-of-memory error: counts and notes the failure, and
 * has features explain it. */
void bfc_last_resort_failed(const struct bfc_call *call);

#endif
