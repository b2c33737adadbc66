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

struct bfc_hook {
    const char *symbol; /* as the driver exports it */
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
void *bfc_replace_entry(void *real, const char *name, int version, bfc_cuda_flags flags);

#endif
