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
void *bfc_replace_entry(void *real, const char *name, int version, bfc_cuda_flags flags);

/*
 * A hook is a local function. A program that links the driver is bound to it by an export of the
 * driver's name, with the hidden version that exports.map explains. The tables hold the local one:
 * the address is the same, and no other library's symbol can get in between.
 */
#define BFC_HOOK_DECLARED(name, arguments)                                                         \
    __attribute__((visibility("hidden"))) CUresult hook_##name arguments __asm__("hook_" #name)
#define BFC_HOOK(name, arguments)                                                                  \
    CUresult bfc_export_##name arguments                                                           \
        __attribute__((visibility("default"), alias("hook_" #name)));                              \
    __asm__(".symver bfc_export_" #name ", " #name "@BFC_BOUND");                                  \
    BFC_HOOK_DECLARED(name, arguments);                                                            \
    CUresult hook_##name arguments

/*
 * A program that binds to our symbol though it has no driver, or one without the call, is told so.
 * (A program that was given the hook by a look-up always has both.)
 */
#define BFC_FIND_DRIVER(driver, call)                                                              \
    const struct bfc_driver *driver = bfc_driver();                                                \
    if (!driver || !driver->call)                                                                  \
    return driver ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_NOT_INITIALIZED

#endif
