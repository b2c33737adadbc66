/*
 * Our side of the driver's entry points: which names have a hook, and how a program is given it.
 *
 * Rules: the real resolver is always asked first, so a driver that lacks a symbol goes on lacking
 * it, and its status words are the driver's own; a hook is handed out only for an exact name whose
 * answer is the real driver's, never for a prefix.
 */
#ifndef BFC_INTERPOSE_HOOKS_H
#define BFC_INTERPOSE_HOOKS_H

#include "interpose/driver.h"

/* Called by the dlsym thunk for names that begin with "cu": a hook, or NULL to go on to the real
 * one. */
void *bfc_resolve(void *handle, const char *name);

/*
 * What a program gets in place of `real`, which the driver's cuGetProcAddress returned for `name`,
 * `version` and `flags`: a hook, or `real` itself.
 */
void *bfc_replace_entry(void *real, const char *name, int version, bfc_cuda_flags flags);

#endif
