/*
 * cudaMalloc and cudaFree of a shared CUDA runtime, answered before the runtime is entered.
 *
 * Exported with the runtimes' own symbol versions, hidden, so that only programs that were linked
 * to such a runtime are bound to them: a weak reference or a look-up without a version finds them
 * as little as it would without us. dlsym and dlvsym give them out in place of a runtime's own.
 *
 * A hit is answered here if the runtime is known to come to the same: the thread's last call of
 * this runtime ended well in the context that is still current. All else is the runtime's to
 * answer: it comes to our driver-level hooks, and its last error, its lazy beginnings and its
 * profilers are as they would be without us. One call in BFC_RUNTIME_LOOKS goes that way whatever
 * it is, so that what was loaded meanwhile is noticed.
 */
#ifndef BFC_INTERPOSE_RUNTIME_H
#define BFC_INTERPOSE_RUNTIME_H

#include "interpose/runtimes.h"

enum { BFC_RUNTIME_LOOKS = 1024 };

/* Calls of dlopen so far, and 1: counted by the thunk. */
extern unsigned long bfc_loads;

/* Something has looked up the driver's way in for profilers, by which they see runtimes' calls. */
void bfc_runtime_watched(void);

/* Our own function for a runtime's. */
void *bfc_runtime_entry(enum bfc_runtime_version version, enum bfc_runtime_call call);

#endif
