/*
 * The hooks: which of the driver's functions have one, and how a program gets it.
 *
 * The loader and the driver's cuGetProcAddress are always asked first, so a symbol that the driver
 * lacks stays missing, and error codes are the driver's own. A hook replaces only the driver's
 * function of exactly the same name. The wrappers of interpose/entry/unknown.h replace functions
 * whose names begin in a certain way.
 */
#ifndef BFC_INTERPOSE_HOOKS_H
#define BFC_INTERPOSE_HOOKS_H

#include "interpose/driver/driver.h"

struct bfc_hook {
    /* the name that the driver exports; an array, since a pointer would cost every process a
     * relocation at its start */
    char symbol[40];
    unsigned row;
    size_t real; /* offset in struct bfc_driver of the pointer to the driver's function */
};

/* Returns the function of this library that a program gets in place of the driver's. */
void *bfc_hook_replacement(const struct bfc_hook *hook);

/* Returns the hook whose symbol has exactly this name, or NULL. */
const struct bfc_hook *bfc_hook_of_symbol(const char *symbol);

/* Whether a driver call of this name, or its variant of CUDA version `version` (0: any version), is
 * newer than the library's tables of calls, so that it may need a hook but has none. */
bool bfc_hook_may_lack(const char *name, int version);

/* Returns the driver's own function behind a hook; NULL if the driver lacks it. */
void *bfc_hook_real(const struct bfc_driver *driver, const struct bfc_hook *hook);

/* Returns what a program gets in place of `real`, which the driver's cuGetProcAddress has returned
 * for `name`, `version` and `flags`: a hook, a wrapper (interpose/entry/unknown.h), or `real`
 * itself. */
void *bfc_hook_for_entry(void *real, const char *name, int version, bfc_cuda_flags flags);

#endif
