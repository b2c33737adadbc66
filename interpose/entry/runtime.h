/*
 * cudaMalloc and cudaFree of a shared CUDA runtime, answered before the runtime is entered.
 *
 * Exported with the runtimes' own symbol versions, hidden, so that only programs that were linked
 * to such a runtime are bound to them: a weak reference or a look-up without a version does not
 * find them. dlsym and dlvsym return them in place of a runtime's own.
 *
 * A hit is answered here if the runtime would answer the same: the thread's last call of this
 * runtime succeeded in the context that is still current. The runtime answers everything else by
 * way of our driver-level hooks, so its last error, its lazy initialisation and its profilers
 * behave as they would without us. One call in BFC_RUNTIME_LOOKS always goes that way, so that
 * objects loaded meanwhile are noticed.
 */
#ifndef BFC_INTERPOSE_RUNTIME_H
#define BFC_INTERPOSE_RUNTIME_H

#include "base/compiler.h"
#include "interpose/entry/runtimes.h"

enum { BFC_RUNTIME_LOOKS = 1024 };

/* Calls of dlopen so far, and 1: counted by the thunk. */
extern unsigned long bfc_loads HIDDEN;

/* Whether something has looked up the driver's entry for profilers, by which they see runtimes'
 * calls. */
void bfc_runtime_watched(void);

/* Our own function for a runtime's. */
void *bfc_runtime_entry(enum bfc_runtime_version version, enum bfc_runtime_call call);

#endif
