// A wrangler, as CUEW and loaders like it: global variables with the driver's names, of default
// visibility, filled by look-ups. Every name that the library exports is one of them.
#include <dlfcn.h>
#include <stdio.h>

#include "tests/integration/routes/route.h"
#include "wrangled_names.h"

int plugin_run(const char *way);

// And some that the library does not export.
#define MORE_NAMES(X) X(cuInit) X(cuMemsetD8_v2) X(cuMemcpyDtoH_v2)
#define VARIABLE(name)                                                                             \
    extern void *name;                                                                             \
    void *name;
WRANGLED_NAMES(VARIABLE)
MORE_NAMES(VARIABLE)

static char fences[1000];

static void store_all(void) {
    unsigned count = 0, kept = 0, index = 0;
#define STORE(name) name = &fences[count++];
    WRANGLED_NAMES(STORE)
#define CHECK(name) kept += name == &fences[index++];
    WRANGLED_NAMES(CHECK)
    printf("all variables keep what is stored: %d\n", kept == count && count > 70);
}

static void load_all(void *libcuda) {
    unsigned found = 0;
#define LOAD(name) found += (name = dlsym(libcuda, #name)) != NULL;
    WRANGLED_NAMES(LOAD)
    MORE_NAMES(LOAD)
    printf("%u functions found\n", found);
}

int plugin_run(const char *way) {
    struct route route;
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    printf("%s\n", way);
    if (!libcuda)
        route_fail("libcuda.so.1", dlerror());
    store_all();
    load_all(libcuda);
    route_begin(libcuda);
    *(void **)&route.allocate = cuMemAlloc_v2;
    *(void **)&route.release = cuMemFree_v2;
    *(void **)&route.set = cuMemsetD8_v2;
    *(void **)&route.read = cuMemcpyDtoH_v2;
    return route_run(&route);
}
