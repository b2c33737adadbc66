/*
 * The known contexts of this process. Each may copy to and from the memory of all others, with or
 * without peer access, and no fence of one context orders another's work. So mode ordered reuses
 * memory on the device only while there is one context.
 *
 * A context becomes known before it can do work: by the call that makes it or makes it current, by
 * its first allocation, or, should it have been made in a way that no hook sees, when the driver is
 * asked. One that was added is settled once the host has waited for what was handed out before.
 * A green context is a part of its device's primary one. Thread-safe; allocates nothing.
 */
#ifndef BFC_INTERPOSE_CONTEXTS_H
#define BFC_INTERPOSE_CONTEXTS_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/driver/driver.h"

extern unsigned bfc_contexts_known; /* for the function below */

/*
 * Whether there is more than one context. A thread adds its context before it checks anything else,
 * so of two threads one sees the other's.
 */
static inline bool bfc_contexts_are_several(void) {
    return UNLIKELY(bfc_load_seq_cst(&bfc_contexts_known) > 1);
}

/* Whether it is known and settled. A few loads: for calls that programs make often. */
bool bfc_contexts_has(CUcontext context);

void bfc_contexts_add(CUcontext context);
void bfc_contexts_settle(CUcontext context);

/* Notes that it is the device's primary context, and adds it if it was not known. */
void bfc_contexts_add_primary(CUcontext context, CUdevice device);

/* Forgets a context that has ended, or the device's known primary context. */
void bfc_contexts_forget(CUcontext context);
void bfc_contexts_forget_primary(CUdevice device);

extern bool bfc_contexts_may_hide; /* for the function below */

/* Whether there may be unknown contexts: not if there is one device and its primary context is
 * known. */
static inline bool bfc_contexts_hide(void) {
    return UNLIKELY(bfc_load_acquire(&bfc_contexts_may_hide));
}

/*
 * Asks the driver for a primary context that is not known yet, and adds it. NULL: there is none,
 * or, with `*unknown` set, the driver did not answer.
 */
CUcontext bfc_contexts_search(const struct bfc_driver *driver, bool *unknown);

#endif
