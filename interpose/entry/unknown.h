/*
 * Entries of the driver that begin a capture and have no hook: those of newer drivers.
 *
 * A program that looks such an entry up gets a wrapper, which passes its arguments on as they are.
 * Once a wrapped entry has begun a capture, this capture counts as under way for ever, since the
 * library does not know what ends it: nothing is recorded or waited for by context any more,
 * allocations go to the driver, and frees of pooled blocks are treated as during a capture that may
 * bar them.
 */
#ifndef BFC_INTERPOSE_UNKNOWN_H
#define BFC_INTERPOSE_UNKNOWN_H

#include <stdbool.h>

/* Whether an entry, by its name, begins captures. */
bool bfc_unknown_begins(const char *name);

/*
 * Returns what a program gets for `name` instead of `real`, an entry of the driver without a hook:
 * its wrapper, always the same one, or `real` itself if it does not begin captures. `real` is also
 * returned when all wrappers are taken; then a capture counts as under way from now on.
 */
void *bfc_unknown_entry(const char *name, void *real);

/* bfc_unknown_wrapper returns the wrapper of an entry, bfc_unknown_real the entry of a wrapper;
 * NULL: there is none. */
void *bfc_unknown_wrapper(const void *real);
void *bfc_unknown_real(const void *wrapper);

#endif
