/*
 * cudaMalloc and cudaFree of a shared CUDA runtime, answered before the runtime is entered.
 *
 * The library exports these functions with the runtimes' own symbol versions, as hidden ones
 * (name@VERSION). So only programs that were linked to such a runtime are bound to them: a weak
 * reference or a look-up without a version does not find them. The library's dlsym and dlvsym
 * return them in place of a runtime's own.
 *
 * A call that the pool can serve at once (a hit) is answered here if the runtime would answer the
 * same: a call of this runtime has succeeded in this thread, in the context that is still current,
 * and cudaSetDevice has not failed since. Every other call is passed to the runtime, whose driver
 * calls reach the hooks, so that its last error, its lazy initialisation and its profilers behave
 * as they would without the library.
 */
#ifndef BFC_INTERPOSE_RUNTIME_H
#define BFC_INTERPOSE_RUNTIME_H

#include "base/compiler.h"
#include "interpose/entry/runtimes.h"

/* After so many calls of a thread the loaded objects are searched again, for new runtimes. */
enum { BFC_RUNTIME_LOOKS = 1024 };

/* The number of calls of dlopen so far, plus 1. The library's dlopen (thunk_*.S) counts them. */
extern unsigned long bfc_loads HIDDEN;

/*
 * To be called when something looks up cuGetExportTable, by which profilers get to see the calls of
 * the runtimes. From then on, with BFC_RUNTIME=auto, every call is passed to the runtime.
 */
void bfc_runtime_watched(void);

/* Returns the library's own function that a program gets in place of a runtime's. */
void *bfc_runtime_entry(enum bfc_runtime_version version, enum bfc_runtime_call call);

#endif
