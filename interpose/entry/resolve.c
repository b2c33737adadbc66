/*
 * Look-ups by name (dlsym, dlvsym) whose result must differ from that of the real look-up.
 *
 * A loaded driver's symbol table leads to the hooks (interpose/entry/binding.h), so the real
 * look-up finds them and reports its own errors. Here a driver which was just loaded is only
 * redirected before the look-up.
 *
 * Look-ups of cudaMalloc, cudaFree and cudaSetDevice are answered here. What RTLD_DEFAULT and
 * RTLD_NEXT mean depends on the caller, which the real dlsym knows by its return address: here, an
 * address in this library. So the code itself searches the objects that the caller's look-up would.
 */
#include "interpose/entry/resolve.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/file_name.h"
#include "interpose/config/routes.h"
#include "interpose/driver/driver.h"
#include "interpose/entry/binding.h"
#include "interpose/entry/hooks.h"
#include "interpose/entry/runtime.h"
#include "interpose/host/c_library.h"
#include "interpose/table/counter.h"

/* Whether a look-up in an object, and in those that it depends on, finds `real`. In glibc an
 * object's link map is its handle. */
static bool finds_in_object(struct link_map *object, const char *name, const void *real) {
    return object && bfc_real_dlsym(object, name) == real;
}

/* Whether a look-up with RTLD_DEFAULT finds `real` in the global scope or that of the caller. */
static bool finds_by_default(const char *name, const void *caller, const void *real) {
    return bfc_real_dlsym(RTLD_DEFAULT, name) == real ||
           finds_in_object(bfc_object_of(caller), name, real);
}

/* Whether a look-up with RTLD_NEXT finds `real` in the objects after the caller's in the global
 * scope or, if `real` is not found there, in the scope of the caller's object. */
static bool finds_next(const char *name, const void *caller, const void *real) {
    struct link_map *object = bfc_object_of(caller), *its = bfc_object_of(real);
    if (!object || object == its)
        return false;
    if (bfc_real_dlsym(RTLD_DEFAULT, name) != real)
        return finds_in_object(object, name, real);
    while (object && object != its)
        object = object->l_next;
    return object;
}

/* Whether dlsym, called by the program at address `caller`, would find `real`. */
static bool finds_real(void *handle, const char *name, const void *caller, const void *real) {
    if (handle == RTLD_DEFAULT)
        return finds_by_default(name, caller, real);
    if (handle == RTLD_NEXT)
        return finds_next(name, caller, real);
    return bfc_real_dlsym(handle, name) == real;
}

static bool comes_before_us(const void *caller) {
    struct link_map *object = bfc_object_of(caller);
    const struct link_map *ours = bfc_object_of(__extension__(void *) bfc_resolve);
    while (object && object != ours)
        object = object->l_next;
    return object;
}

/* Whether the caller is a library behind this one that exports a dlsym of its own. This library's
 * dlsym jumps to the caller's, so if the caller got this library's dlsym as the real one, the two
 * would call each other without end. */
static bool forwards_for_us(const void *caller) {
    const struct link_map *object = bfc_object_of(caller);
    return object && bfc_object_function(object, "dlsym", NULL) && !comes_before_us(caller);
}

/* Answers a look-up of dlsym with a version. A program that wants to get past a preloaded dlsym
 * still gets this library's, and so does a library before this one that exports a dlsym of its own.
 * Otherwise look-ups would not come here, and a driver that is loaded later would go unnoticed. */
static void *resolve_dlsym(void *handle, const char *version, const void *caller, void *ours) {
    void *real = bfc_real_dlvsym(handle, "dlsym", version);
    if (!real || bfc_object_of(real) != bfc_object_of(bfc_c_function("dlsym")) ||
        forwards_for_us(caller))
        return NULL;
    return ours;
}

/* Returns the index of `name` in `names`; `count` if it is not there. */
static unsigned index_of(const char *name, const char names[][16], unsigned count) {
    unsigned i = 0;
    while (i < count && strcmp(names[i], name) != 0)
        i++;
    return i;
}

static void *give_entry(enum bfc_runtime_version version, enum bfc_runtime_call call) {
    bfc_routes_note(bfc_runtime_names[call], BFC_ROUTE_DLSYM);
    return bfc_runtime_entry(version, call);
}

/* Answers a look-up without a version. If it would find the function of the only loaded runtime,
 * the result is this library's function. The real look-up does not find that one, since this
 * library exports it with a hidden version (name@VERSION). */
static void *resolve_without_version(void *handle, enum bfc_runtime_call call, const void *caller) {
    struct bfc_runtimes runtimes;
    bfc_runtimes_find(&runtimes);
    for (int v = 0; v < BFC_RUNTIME_VERSIONS; v++) {
        enum bfc_runtime_version version = (enum bfc_runtime_version)v;
        void *real = runtimes.of[v].calls[call];
        if (real && bfc_runtimes_sole(&runtimes, version) &&
            finds_real(handle, bfc_runtime_names[call], caller, real))
            return give_entry(version, call);
    }
    return NULL;
}

/* Returns what a look-up with a version would find without this library. (RTLD_NEXT in a call from
 * here means the objects after this library.) */
static void *find_natively(void *handle, const char *name, const char *version,
                           const void *caller) {
    void *found = bfc_real_dlvsym(RTLD_NEXT, name, version);
    struct link_map *object = handle == RTLD_DEFAULT && !found ? bfc_object_of(caller) : NULL;
    return object && object->l_name[0] ? bfc_real_dlvsym(object, name, version) : found;
}

/* Answers a look-up with a version, which may find this library's own export. If no other object
 * has the symbol, the program must get an error. So `*name` is replaced by a name that does not
 * exist, which makes the message read like glibc's message for the original name. */
static void *resolve_versioned(void *handle, const char **name, const char **version,
                               enum bfc_runtime_call call, const void *caller) {
    static const char missing[BFC_RUNTIME_VERSIONS][BFC_RUNTIME_CALL_COUNT][40] = {
#define ROW(number, text)                                                                          \
    {"cudaMalloc, version " text, "cudaFree, version " text, "cudaSetDevice, version " text},
        BFC_RUNTIMES(ROW)
#undef ROW
    };
    struct bfc_runtimes runtimes;
    enum bfc_runtime_version v = index_of(*version, bfc_runtime_versions, BFC_RUNTIME_VERSIONS);
    if (v == BFC_RUNTIME_VERSIONS || (handle == RTLD_NEXT && !comes_before_us(caller)))
        return NULL;
    bfc_runtimes_find(&runtimes);
    void *found = handle == RTLD_NEXT || handle == RTLD_DEFAULT
                      ? bfc_runtime_entry(v, call)
                      : bfc_real_dlvsym(handle, *name, *version);
    if (found == bfc_runtime_entry(v, call))
        found = find_natively(handle, *name, *version, caller);
    else if (!found)
        return NULL;
    if (found && found == runtimes.of[v].calls[call] && bfc_runtimes_sole(&runtimes, v))
        return give_entry(v, call);
    if (found)
        return found;
    *name = missing[v][call];
    *version = NULL;
    return NULL;
}

/* Whether a name that begins with cu may be a driver call's, which has a capital letter after
 * that. */
static bool is_driver_name(const char *name) {
    return name[2] >= 'A' && name[2] <= 'Z';
}

static void note_hook(const char *name) {
    const struct bfc_hook *hook = bfc_hook_of_symbol(name);
    if (hook)
        bfc_routes_note(hook->symbol, BFC_ROUTE_DLSYM);
}

/* Whether the caller is UCX's libucm. It writes jumps into the code of functions that it looks up,
 * to learn which memory is allocated and freed. So it gets the driver's own functions, and learns
 * of the regions that the pool takes and gives back, not of each block in them. */
static bool patches_code(const void *caller) {
    const struct link_map *object = bfc_object_of(caller);
    return object && strncmp(bfc_file_name(object->l_name), "libucm", strlen("libucm")) == 0;
}

/* Returns the driver's own function if the look-up would find its hook, else NULL. */
static void *driver_own(void *handle, const char *name, const void *caller) {
    const struct bfc_hook *hook = bfc_hook_of_symbol(name);
    return hook && finds_real(handle, name, caller, bfc_hook_replacement(hook))
               ? bfc_hook_real(bfc_driver(), hook)
               : NULL;
}

static void *resolve_driver(void *handle, const char *name, const void *caller) {
    /* from here on, look-ups of a loaded driver's names find the hooks */
    bfc_bind_loaded_driver();
    if (!bfc_driver_found)
        return NULL;
    if (patches_code(caller))
        return driver_own(handle, name, caller);
    note_hook(name);
    if (bfc_counter && bfc_hook_may_lack(name, 0)) {
        if (bfc_real_dlsym(bfc_real_dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY), name))
            bfc_counter->hide(name);
        bfc_forget_dl_error();
    }
    return NULL;
}

void *bfc_resolve(void *handle, const char **name, const char **version, const void *caller,
                  void *own_dlsym) {
    if (*version && strcmp(*name, "dlsym") == 0)
        return resolve_dlsym(handle, *version, caller, own_dlsym);
    /* CUPTI uses it to show the runtime's calls to a profiler, so they must reach the runtime */
    if (strcmp(*name, "cuGetExportTable") == 0)
        bfc_runtime_watched();
    enum bfc_runtime_call call = index_of(*name, bfc_runtime_names, BFC_RUNTIME_CALL_COUNT);
    if (call == BFC_RUNTIME_CALL_COUNT)
        return is_driver_name(*name) ? resolve_driver(handle, *name, caller) : NULL;
    if (!*version && patches_code(caller))
        return NULL;
    return *version ? resolve_versioned(handle, name, version, call, caller)
                    : resolve_without_version(handle, call, caller);
}

/* Returns `mode` without RTLD_DEEPBIND unless BFC_DEEPBIND=keep. The environment is read at each
 * call of dlopen, of which there are few, so that a process without CUDA keeps no state. */
int bfc_dlopen_mode(const char *file, int mode) {
    (void)file;
    const char *choice = getenv("BFC_DEEPBIND");
    return choice && strcmp(choice, "keep") == 0 ? mode : mode & ~RTLD_DEEPBIND;
}

NO_SANITIZER void *bfc_next_function(const char *name) {
    void *next = bfc_real_dlsym(RTLD_NEXT, name);
    return next ? next : bfc_c_function(name);
}
