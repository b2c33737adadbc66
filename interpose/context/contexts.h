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

extern unsigned bfc_contexts_known HIDDEN; /* for the function below */

/*
 * Whether there is more than one context. A thread adds its context before it checks anything else,
 * so of two threads one sees the other's.
 */
static inline bool bfc_contexts_are_several(void) {
    return UNLIKELY(bfc_load_seq_cst(&bfc_contexts_known) > 1);
}

/* Whether it is known and settled, and its handle still means it: a few loads and one question to
 * the driver, for calls that programs make often. */
bool bfc_contexts_has(const struct bfc_driver *driver, CUcontext context);

void bfc_contexts_add(CUcontext context);
void bfc_contexts_settle(CUcontext context);

/* Notes that it is the device's primary context, and adds it if it was not known. */
void bfc_contexts_add_primary(CUcontext context, CUdevice device);

void bfc_contexts_forget(CUcontext context);

/* A hook saw the program retain the device's primary context, or release it. bfc_contexts_is_kept:
 * one more release would not be the last. */
void bfc_contexts_retained(CUdevice device);
void bfc_contexts_let_go(CUdevice device);
bool bfc_contexts_is_kept(CUdevice device);

/*
 * A context that a hook is about to end, until bfc_contexts_open: nobody else takes it for one that
 * has ended unseen. bfc_contexts_close returns a number that no other context ever has, or 0 for
 * one that is not known. bfc_contexts_open: false: it was forgotten meanwhile.
 */
uint64_t bfc_contexts_close(CUcontext context);
bool bfc_contexts_open(CUcontext context, uint64_t number);

/* A known context that has ended, and that no hook is ending; NULL: there is none. */
CUcontext bfc_contexts_find_ended(const struct bfc_driver *driver);

/*
 * Contexts may end by calls that no hook sees. Looks which have, and ends all that was noted of
 * them, before something is noted of a new one that may have got the handle. The caller holds no
 * lock. bfc_contexts_set_reviewer: what does so.
 */
void bfc_contexts_review(const struct bfc_driver *driver);
void bfc_contexts_set_reviewer(void (*review)(const struct bfc_driver *driver));

extern bool bfc_contexts_may_hide HIDDEN; /* for the function below */

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
