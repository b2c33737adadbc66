/* The walk over the loaded objects for CUDA runtimes, and the search for a runtime's function in a
 * caller's scope. */
#include "interpose/entry/runtimes.h"

#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>

#include "base/atomic.h"
#include "interpose/host/c_library.h"

const char bfc_runtime_versions[BFC_RUNTIME_VERSIONS][16] = {
#define VERSION(number, version) version,
    BFC_RUNTIMES(VERSION)
#undef VERSION
};
const char bfc_runtime_names[BFC_RUNTIME_CALL_COUNT][16] = {"cudaMalloc", "cudaFree",
                                                            "cudaSetDevice"};

static void add_runtime(struct bfc_runtimes *runtimes, const struct link_map *object,
                        const char *version) {
    for (int v = 0; v < BFC_RUNTIME_VERSIONS; v++) {
        if (strcmp(bfc_runtime_versions[v], version) != 0 || runtimes->of[v].count++ > 0)
            continue;
        for (int call = 0; call < BFC_RUNTIME_CALL_COUNT; call++)
            runtimes->of[v].calls[call] =
                bfc_object_function(object, bfc_runtime_names[call], NULL);
    }
}

static bool is_runtime_version(const char *version) {
    return strncmp(version, "libcudart.so.", strlen("libcudart.so.")) == 0;
}

static void look_at_object(struct bfc_runtimes *runtimes, const struct link_map *object) {
    const char *version;
    if (object->l_ld == _DYNAMIC) /* skips this library itself, which exports cudaMalloc too */
        return;
    if (!bfc_object_function(object, "cudaMalloc", &version))
        return;
    if (is_runtime_version(version))
        add_runtime(runtimes, object, version);
    else
        runtimes->others = true;
}

static void count_changes(struct bfc_runtimes *runtimes, const struct dl_phdr_info *info) {
    runtimes->loaded = info->dlpi_adds;
    runtimes->unloaded = info->dlpi_subs;
}

static int visit_object(struct dl_phdr_info *info, size_t size, void *context) {
    struct bfc_runtimes *runtimes = context;
    struct link_map object;
    (void)size;
    count_changes(runtimes, info);
    if (bfc_object_of_walk(info, &object))
        look_at_object(runtimes, &object);
    return 0;
}

static int visit_first(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    count_changes(context, info);
    return 1;
}

static bool busy; /* a spin lock that guards `last`: whether a thread holds it */
/* the result of the last walk over the loaded objects; its `loaded` is 0 before the first one */
static struct bfc_runtimes last;

/* Takes the lock that guards `last`, which threads hold only while they copy `last`. False: the
 * lock could not be got, perhaps because another thread held it when this process was forked; then
 * the caller walks over the objects by itself. */
static bool enter_search(void) {
    for (int tries = 0; tries < 100; tries++) {
        if (!bfc_exchange_acquire(&busy, true))
            return true;
        sched_yield();
    }
    return false;
}

static void leave_search(void) {
    bfc_store_release(&busy, false);
}

static bool recall_runtimes(struct bfc_runtimes *runtimes) {
    struct bfc_runtimes now = {0};
    dl_iterate_phdr(visit_first, &now);
    if (!enter_search())
        return false;
    bool valid = last.loaded == now.loaded && last.unloaded == now.unloaded;
    if (valid)
        *runtimes = last;
    leave_search();
    return valid;
}

void bfc_runtimes_find(struct bfc_runtimes *runtimes) {
    if (recall_runtimes(runtimes))
        return;
    memset(runtimes, 0, sizeof *runtimes);
    dl_iterate_phdr(visit_object, runtimes);
    if (!enter_search())
        return;
    last = *runtimes;
    leave_search();
}

bool bfc_runtimes_sole(const struct bfc_runtimes *runtimes, enum bfc_runtime_version version) {
    return runtimes->of[version].count == 1 && !runtimes->others;
}

/* Looks a symbol up in an object and in those that it depends on. The object is opened again: if it
 * was loaded only because another depends on it, it has no scope of its own until it is opened. */
static void *find_in_scope(const struct link_map *object, const char *name, const char *version) {
    if (!object || !object->l_name[0])
        return NULL;
    int (*close)(void *);
    *(void **)&close = bfc_c_function("dlclose");
    void *handle = bfc_real_dlopen(object->l_name, RTLD_NOLOAD | RTLD_LAZY);
    void *found = handle ? bfc_real_dlvsym(handle, name, version) : NULL;
    if (handle && close)
        close(handle);
    return found;
}

/* Searches the objects after this library in the global scope. Returns the first function `name` if
 * it is not a runtime's, else the first one with the symbol version `version`. */
static void *find_next(const char *name, const char *version) {
    const char *its_version;
    void *next = bfc_real_dlsym(RTLD_NEXT, name);
    const struct link_map *object = next ? bfc_object_of(next) : NULL;
    if (object && bfc_object_function(object, name, &its_version) &&
        !is_runtime_version(its_version))
        return next;
    return bfc_real_dlvsym(RTLD_NEXT, name, version);
}

void *bfc_runtimes_call(const struct bfc_runtimes *runtimes, enum bfc_runtime_version version,
                        enum bfc_runtime_call call, const void *address) {
    void *first = runtimes->of[version].calls[call];
    if (bfc_runtimes_sole(runtimes, version))
        return first;
    const char *name = bfc_runtime_names[call], *text = bfc_runtime_versions[version];
    void *found = find_next(name, text);
    if (!found)
        found = find_in_scope(bfc_object_of(address), name, text);
    bfc_forget_dl_error();
    return found ? found : first;
}
