// Another library that is preloaded: it counts malloc, dlsym and dlopen on their way, finding the
// next ones as such libraries do. At the program's end it says what passed through it.
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

typedef void *(*dlsym_function)(void *, const char *);

static atomic_uint mallocs, openings, names;

static dlsym_function real_dlsym(void) {
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    static dlsym_function found;
    for (size_t i = 0; i < 3 && !found; i++)
        *(void **)&found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    return found;
}

__attribute__((visibility("default"))) void *malloc(size_t bytes) {
    static void *(*next)(size_t);
    if (!next)
        *(void **)&next = real_dlsym()(RTLD_NEXT, "malloc");
    atomic_fetch_add(&mallocs, 1);
    return next(bytes);
}

__attribute__((visibility("default"))) void *dlopen(const char *file, int mode) {
    static void *(*next)(const char *, int);
    if (!next)
        *(void **)&next = real_dlsym()(RTLD_NEXT, "dlopen");
    atomic_fetch_add(&openings, 1);
    return next(file, mode);
}

__attribute__((visibility("default"))) void *dlsym(void *handle, const char *name) {
    atomic_fetch_add(&names, name[0] == 'n');
    return real_dlsym()(handle, name);
}

__attribute__((destructor)) static void report(void) {
    fprintf(stderr, "second: malloc %s, dlopen %u, dlsym of names with n %u\n",
            atomic_load(&mallocs) ? "seen" : "not seen", atomic_load(&openings),
            atomic_load(&names));
}
