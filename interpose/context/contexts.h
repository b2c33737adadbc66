/*
 * The contexts of this process that are known. Each may copy to and from the memory of all others,
 * with or without peer access, and no fence of one context orders the work of another. So mode
 * ordered reuses memory on the device only while there is one context.
 *
 * A context becomes known before it can do work: by the call that makes it or makes it current, by
 * its first allocation, or, if no hook sees how it is made, when the driver is asked. A context
 * that was added is settled once the host has waited for the fences under which blocks were handed
 * out before. A green context is a part of its device's primary context. Thread-safe; allocates
 * nothing.
 */
#ifndef BFC_INTERPOSE_CONTEXTS_H
#define BFC_INTERPOSE_CONTEXTS_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/driver/driver.h"

extern unsigned bfc_contexts_known HIDDEN; /* number of contexts, for bfc_contexts_are_several */

/* Whether there is more than one context. Threads that add two contexts at once each add theirs
 * before they look, so at least one of them sees the other's. */
static inline bool bfc_contexts_are_several(void) {
    return UNLIKELY(bfc_load_seq_cst(&bfc_contexts_known) > 1);
}

/* Whether the context is known and settled, and its handle still means this context. Costs a few
 * loads and one question to the driver, for calls that programs make often. */
bool bfc_contexts_has(const struct bfc_driver *driver, CUcontext context);

void bfc_contexts_add(CUcontext context);
void bfc_contexts_settle(CUcontext context);

/* Notes that the context is the device's primary context, and adds it if it is not known. */
void bfc_contexts_add_primary(CUcontext context, CUdevice device);

void bfc_contexts_forget(CUcontext context);

/* bfc_contexts_retained and bfc_contexts_let_go note that the program has retained or released the
 * device's primary context. bfc_contexts_is_kept returns true if one more release would not be the
 * last. */
void bfc_contexts_retained(CUdevice device);
void bfc_contexts_let_go(CUdevice device);
bool bfc_contexts_is_kept(CUdevice device);

/* bfc_contexts_close marks a context that a hook is about to end, until bfc_contexts_open: no other
 * thread takes it for one that has ended unseen. It returns a number that no other context ever
 * has; 0: the context is not known. bfc_contexts_open returns false if the context was forgotten
 * meanwhile. */
uint64_t bfc_contexts_close(CUcontext context);
bool bfc_contexts_open(CUcontext context, uint64_t number);

/* Returns a known context that has ended, and that no hook is ending; NULL: there is none. */
CUcontext bfc_contexts_find_ended(const struct bfc_driver *driver);

/* bfc_contexts_review finds the contexts that have ended by calls that no hook sees, and ends all
 * that was noted of them. It must be called before something is noted of a new context, which may
 * have got the handle of an ended one. The caller holds no lock. bfc_contexts_set_reviewer sets the
 * function that does the work. */
void bfc_contexts_review(const struct bfc_driver *driver);
void bfc_contexts_set_reviewer(void (*review)(const struct bfc_driver *driver));

extern bool bfc_contexts_may_hide HIDDEN; /* callers read it by bfc_contexts_hide */

/* Whether there may be contexts that are not known. There are none if there is one device and its
 * primary context is known. */
static inline bool bfc_contexts_hide(void) {
    return UNLIKELY(bfc_load_acquire(&bfc_contexts_may_hide));
}

/* Asks the driver for a primary context that is not known yet, adds it and returns it. NULL: there
 * is none, or, with `*unknown` set, the driver did not answer. */
CUcontext bfc_contexts_search(const struct bfc_driver *driver, bool *unknown);

#endif
