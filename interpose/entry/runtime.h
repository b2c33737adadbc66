/*
 * cudaMalloc and cudaFree of a shared CUDA runtime, answered before the runtime is entered.
 *
 * Our functions are exported with the runtimes' own symbol versions, hidden, so that only programs
 * that were linked to such a runtime are bound to them: a weak reference or a look-up without a
 * version does not find them. Our dlsym and dlvsym return them in place of a runtime's own.
 *
 * A call that the pool can serve at once (a hit) is answered here if the runtime would answer the
 * same: a call of this runtime has succeeded in this thread, in the context that is still current,
 * and cudaSetDevice has not failed since. The runtime answers everything else by way of our
 * driver-level hooks, so its last error, its lazy initialisation and its profilers behave as they
 * would without us. One call in BFC_RUNTIME_LOOKS always goes that way, so that objects loaded
 * meanwhile are noticed.
 */
#ifndef BFC_INTERPOSE_RUNTIME_H
#define BFC_INTERPOSE_RUNTIME_H

#include "base/compiler.h"
#include "interpose/entry/runtimes.h"

enum { BFC_RUNTIME_LOOKS = 1024 };

/* One more than the number of calls of dlopen so far. The thunk of dlopen counts them. */
extern unsigned long bfc_loads HIDDEN;

/*
 * To be called when something looks up cuGetExportTable, by which profilers get to see the calls of
 * the runtimes. With BFC_RUNTIME=auto, no call is answered here from then on.
 */
void bfc_runtime_watched(void);

/* Our own function that stands before a runtime's. */
void *bfc_runtime_entry(enum bfc_runtime_version version, enum bfc_runtime_call call);

#endif
