/*
 * Driver calls that begin a stream capture and have no hook: those of newer drivers.
 *
 * A program that looks such a call up gets a wrapper, which passes its arguments on as they are.
 * Once a wrapped call has begun a capture, that capture counts as under way for ever, since the
 * library does not know which call ends it: the library no longer records or awaits events for
 * whole contexts, allocations go to the driver, and frees of pooled blocks are handled as if it
 * might forbid them.
 */
#ifndef BFC_INTERPOSE_UNKNOWN_H
#define BFC_INTERPOSE_UNKNOWN_H

#include <stdbool.h>

bool bfc_unknown_begins(const char *name);

/*
 * Returns what a program gets for `name` instead of `real`, a driver call without a hook: its
 * wrapper, the same each time, or `real` itself if calls of that name begin no captures. If no
 * wrapper is left, returns `real`, and a capture counts as under way, in case `real` begins one.
 */
void *bfc_unknown_entry(const char *name, void *real);

/* bfc_unknown_wrapper returns the wrapper of a driver call, bfc_unknown_real the driver call of a
 * wrapper; NULL: there is none. */
void *bfc_unknown_wrapper(const void *real);
void *bfc_unknown_real(const void *wrapper);

#endif
