/*
 * The driver's entry points: which names have a hook, and how a program gets it.
 *
 * Rules: the real resolver always answers first, so a symbol that the driver lacks stays missing,
 * and status words are the driver's own. A hook replaces only the driver's own function of exactly
 * its name, never of a prefix; interpose/entry/unknown.h is the one exception.
 */
#ifndef BFC_INTERPOSE_HOOKS_H
#define BFC_INTERPOSE_HOOKS_H

#include "interpose/driver/driver.h"

struct bfc_hook {
    char symbol[40]; /* as the driver exports it; no pointer, which would cost every process a
                        relocation at its start */
    void *replacement;
    size_t real; /* offset in struct bfc_driver */
};

/* The hook of an exact symbol name, or NULL. */
const struct bfc_hook *bfc_hook_of_symbol(const char *symbol);

/* The driver's own function behind a hook; NULL: it has none. */
void *bfc_hook_real(const struct bfc_driver *driver, const struct bfc_hook *hook);

/*
 * What a program gets in place of `real`, which the driver's cuGetProcAddress returned for `name`,
 * `version` and `flags`: a hook, or `real` itself.
 */
void *bfc_hook_for_entry(void *real, const char *name, int version, bfc_cuda_flags flags);

#endif
