/*
 * Look-ups by name: which of them come out at the driver.
 *
 * Our own exports are invisible to dlsym (exports.map says how), so that the real look-up answers
 * as without us: it fails, with its own error, where it would, and finds the driver's function
 * where it would. The pseudo-handles depend on the caller, whom the real dlsym knows from its
 * return address alone, which a call from here cannot give it: there the places are looked through
 * in which such a caller's look-up could find the driver.
 */
#include "interpose/resolve.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/hooks.h"
#include "interpose/real_dl.h"

static struct link_map *object_of(const void *address) {
    int (*dladdr1_)(const void *, Dl_info *, void **, int);
    *(void **)&dladdr1_ = bfc_c_function("dladdr1");
    Dl_info info;
    void *map = NULL;
    if (!dladdr1_ || !dladdr1_(address, &info, &map, RTLD_DL_LINKMAP))
        return NULL;
    return map;
}

/* In glibc an object's link map is its handle: a look-up in it and what it needs. */
static bool finds_in_object(struct link_map *object, const char *name, const void *real) {
    return object && bfc_real_dlsym(object, name) == real;
}

/* RTLD_DEFAULT: the global scope, then the caller's own. */
static bool finds_by_default(const char *name, const void *caller, const void *real) {
    return bfc_real_dlsym(RTLD_DEFAULT, name) == real ||
           finds_in_object(object_of(caller), name, real);
}

/* RTLD_NEXT: whatever comes after the caller, in the global scope or in its own. */
static bool finds_next(const char *name, const void *caller, const void *real) {
    struct link_map *object = object_of(caller), *driver = object_of(real);
    if (!object || object == driver)
        return false;
    if (bfc_real_dlsym(RTLD_DEFAULT, name) != real)
        return finds_in_object(object, name, real);
    while (object && object != driver)
        object = object->l_next;
    return object != NULL;
}

static bool finds_driver(void *handle, const char *name, const void *caller, const void *real) {
    if (handle == RTLD_DEFAULT)
        return finds_by_default(name, caller, real);
    if (handle == RTLD_NEXT)
        return finds_next(name, caller, real);
    return bfc_real_dlsym(handle, name) == real;
}

/* ---- dlvsym ---- */

static void *real_dlvsym(void *handle, const char *name, const char *version) {
    void *(*real)(void *, const char *, const char *);
    *(void **)&real = bfc_c_function("dlvsym");
    return real ? real(handle, name, version) : NULL;
}

/* The thunk itself. */
extern void *bfc_dlsym(void *handle, const char *name) __attribute__((visibility("hidden")));

/*
 * A program that takes dlsym by its version to get past a preloaded one gets ours all the same; but
 * not a library that exports a dlsym itself: for it, what comes after is its own affair.
 */
static void *resolve_dlsym(void *handle, const char *version, const void *caller) {
    void *real = real_dlvsym(handle, "dlsym", version);
    if (!real || object_of(real) != object_of(bfc_c_function("dlsym")) ||
        bfc_object_exports(object_of(caller), "dlsym"))
        return NULL;
    return __extension__(void *) bfc_dlsym;
}

/* ---- what the thunks ask ---- */

void *bfc_resolve(void *handle, const char *name, const char *version, const void *caller) {
    if (version && strcmp(name, "dlsym") == 0)
        return resolve_dlsym(handle, version, caller);
    const struct bfc_hook *hook = bfc_hook_of_symbol(name);
    const struct bfc_driver *driver = hook ? bfc_driver() : NULL;
    const void *real = driver ? bfc_hook_real(driver, hook) : NULL;
    if (!real)
        return NULL;
    bool found = version ? handle != RTLD_NEXT && real_dlvsym(handle, name, version) == real
                         : finds_driver(handle, name, caller, real);
    return found ? hook->replacement : NULL;
}

/* Read at each such call, which are few, so that a process without CUDA keeps nothing of ours. */
int bfc_dlopen_mode(const char *file, int mode) {
    (void)file;
    const char *choice = getenv("BFC_DEEPBIND");
    return choice && strcmp(choice, "keep") == 0 ? mode : mode & ~RTLD_DEEPBIND;
}

void *bfc_next_function(const char *name) {
    void *next = bfc_real_dlsym(RTLD_NEXT, name);
    return next ? next : bfc_c_function(name);
}
