/*
 * The known contexts: those of this process that the library has learned of. A context may copy to
 * and from the memory of any other, with or without peer access, and no fence of one context orders
 * the work of another. So mode ordered (BFC_FREE) reuses memory before its work is complete only
 * while there is one context.
 *
 * A context becomes known before it can do work: by a hook of the call that makes it or makes it
 * current, by its first allocation, or, if no hook sees it, when the driver is asked for primary
 * contexts. It is settled once the host has waited for the fences of the blocks that mode ordered
 * had handed out before. A green context is a part of its primary one. Thread-safe.
 */
#ifndef BFC_INTERPOSE_CONTEXTS_H
#define BFC_INTERPOSE_CONTEXTS_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/driver/driver.h"

/* the number of known contexts; other files use bfc_contexts_are_several */
extern unsigned bfc_contexts_known HIDDEN;

/* Whether more than one context is known. A thread adds a new context before it asks, so if two
 * threads add contexts at once, at least one of them sees both. */
static inline bool bfc_contexts_are_several(void) {
    return UNLIKELY(bfc_load_seq_cst(&bfc_contexts_known) > 1);
}

/* Whether the context is known and settled, and its handle still means that context. Cheap enough
 * for calls that programs make often: a few loads and one driver call. */
bool bfc_contexts_has(const struct bfc_driver *driver, CUcontext context);

void bfc_contexts_add(CUcontext context);
void bfc_contexts_settle(CUcontext context);

/* Records that the context is the primary context of `device`, and adds it if it is not known. */
void bfc_contexts_add_primary(CUcontext context, CUdevice device);

/* Removes a context. `number`: what bfc_contexts_close or bfc_contexts_find_ended has returned, or
 * 0: any. False: another thread has removed the context with that number. */
bool bfc_contexts_forget(CUcontext context, uint64_t number);

/* bfc_contexts_retained and bfc_contexts_let_go count that the program has retained or released the
 * device's primary context. bfc_contexts_is_kept tells whether the program would still retain it
 * after one more release. */
void bfc_contexts_retained(CUdevice device);
void bfc_contexts_let_go(CUdevice device);
bool bfc_contexts_is_kept(CUdevice device);

/* bfc_contexts_close marks a context that a hook is about to end, until bfc_contexts_open, so that
 * other threads do not conclude that it has ended without a hook. It returns a number that
 * identifies this context for ever; 0: the context is not known. */
uint64_t bfc_contexts_close(CUcontext context);
void bfc_contexts_open(CUcontext context, uint64_t number);

/* Returns a known context that has ended by a call without a hook, with its number; NULL: there is
 * none. */
CUcontext bfc_contexts_find_ended(const struct bfc_driver *driver, uint64_t *number);

/* bfc_contexts_review finds the contexts that have ended by calls without hooks, and drops all that
 * the library has recorded about them. It must be called before anything is recorded about a new
 * context, to which the driver may have given the handle of an ended one. The caller holds no lock.
 * bfc_contexts_set_reviewer sets the function that does this work. */
void bfc_contexts_review(const struct bfc_driver *driver);
void bfc_contexts_set_reviewer(void (*review)(const struct bfc_driver *driver));

extern bool bfc_contexts_may_hide HIDDEN; /* other files use bfc_contexts_hide */

/* Whether there may be contexts that the library does not know. False if there is one device and
 * its primary context is known. */
static inline bool bfc_contexts_hide(void) {
    return UNLIKELY(bfc_load_acquire(&bfc_contexts_may_hide));
}

/* Looks for an active primary context that is not known yet, adds it and returns it. NULL: there is
 * none; or, with `*unknown` set to true, the driver did not answer. */
CUcontext bfc_contexts_search(const struct bfc_driver *driver, bool *unknown);

#endif
