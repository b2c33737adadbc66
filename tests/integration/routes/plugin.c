// A plug-in that reaches the driver by itself: by what it links (ROUTE_LINKED), by RTLD_DEFAULT
// from its own scope, by RTLD_NEXT, or by opening a library that only its own RUNPATH leads to.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tests/integration/routes/route.h"

int plugin_run(const char *way);

static int run(void *handle) {
    struct route route;
    *(void **)&route.allocate = route_find(handle, "cuMemAlloc_v2");
    *(void **)&route.release = route_find(handle, "cuMemFree_v2");
    *(void **)&route.set = route_find(handle, "cuMemsetD8_v2");
    *(void **)&route.read = route_find(handle, "cuMemcpyDtoH_v2");
    return route_run(&route);
}

#ifdef ROUTE_LINKED
extern int cuMemAlloc_v2(uint64_t *, size_t), cuMemFree_v2(uint64_t);
extern int cuMemsetD8_v2(uint64_t, unsigned char, size_t);
extern int cuMemcpyDtoH_v2(void *, uint64_t, size_t);

static int run_linked(void) {
    return route_run(&(struct route){cuMemAlloc_v2, cuMemFree_v2, cuMemsetD8_v2, cuMemcpyDtoH_v2});
}
#else
static int run_linked(void) {
    return 1;
}
#endif

// The helper has the same function, over the driver that it links; nobody else knows where it lies.
static int run_helper(void) {
    int (*helper)(const char *);
    void *handle = dlopen("libroutehelper.so", RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        route_fail("libroutehelper.so", dlerror());
    *(void **)&helper = route_find(handle, "plugin_run");
    return helper("linked");
}

int plugin_run(const char *way) {
    if (strcmp(way, "helper") == 0)
        return run_helper();
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!libcuda)
        route_fail("libcuda.so.1", dlerror());
    route_begin(libcuda);
    if (strcmp(way, "linked") == 0)
        return run_linked();
    if (strcmp(way, "default") == 0)
        return run(RTLD_DEFAULT);
    if (strcmp(way, "next") == 0)
        return run(RTLD_NEXT);
    return run(libcuda);
}
