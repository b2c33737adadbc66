/*
 * A program with UCX's memory hooks, or with the library that stands for them. Prints which library
 * a look-up of each finds, and what the hooks saw of two allocations.
 *
 * usage: ucx STANDS_FOR_LIBUCM | ucx --ucx       (libucs.so.0 and libucm.so.0 found by the loader)
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALLOCATED = 1 << 20, FREED = 1 << 21 }; /* UCM_EVENT_MEM_TYPE_ALLOC, _FREE */

static int allocated, freed;

static void on_event(int type, void *event, void *unused) {
    (void)event, (void)unused;
    allocated += type == ALLOCATED;
    freed += type == FREED;
}

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, dlerror());
    exit(77);
}

static void hook_with_ucx(void) {
    int (*set)(int events, int priority, void (*handler)(int, void *, void *), void *argument);
    if (!dlopen("libucs.so.0", RTLD_LAZY | RTLD_GLOBAL))
        fail("libucs.so.0");
    void *library = dlopen("libucm.so.0", RTLD_LAZY | RTLD_GLOBAL);
    *(void **)&set = library ? dlsym(library, "ucm_set_event_handler") : NULL;
    if (!set)
        fail("libucm.so.0");
    printf("hooked: %d\n", set(ALLOCATED | FREED, 1000, on_event, NULL));
}

static const char *home_of(const void *function) {
    Dl_info info;
    if (!function || !dladdr(function, &info))
        return "nothing";
    const char *slash = strrchr(info.dli_fname, '/');
    return slash ? slash + 1 : info.dli_fname;
}

static void look_up_as_patcher(const char *path) {
    void *(*look_up)(void *handle, const char *name);
    void *library = dlopen(path, RTLD_NOW);
    *(void **)&look_up = library ? dlsym(library, "patcher_look_up") : NULL;
    if (!look_up)
        fail(path);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    printf("patcher by default: %s\n", home_of(look_up(RTLD_DEFAULT, "cuMemAlloc_v2")));
    printf("patcher by handle: %s\n", home_of(look_up(driver, "cuMemFree_v2")));
    printf("patcher, no such: %s\n", home_of(look_up(driver, "cuMemNoSuch")));
    printf("patcher, not there: %s\n", home_of(look_up(library, "cuMemFree_v2")));
    printf("program: %s\n", home_of(dlsym(driver, "cuMemAlloc_v2")));
}

static int allocations(void) {
    CUcontext context;
    CUdeviceptr small = 0, large = 0;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuMemAlloc(&small, 1000) || cuMemAlloc(&large, 64 << 20) || cuMemFree(small) ||
        cuMemFree(large))
        return 1;
    /* Served by the pool, where there is one: nothing that the hooks should see. */
    return cuMemAlloc(&small, 1000) || cuMemFree(small);
}

int main(int count, char **arguments) {
    if (count != 2)
        return 2;
    if (strcmp(arguments[1], "--ucx") == 0)
        hook_with_ucx();
    else
        look_up_as_patcher(arguments[1]);
    int result = allocations();
    printf("allocated %d, freed %d\n", allocated, freed);
    return result;
}
