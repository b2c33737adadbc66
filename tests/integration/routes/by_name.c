// dlopen and dlsym of the driver, in the ways that programs have. usage: by_name WAY
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tests/integration/routes/route.h"

typedef void *(*find_function)(void *, const char *);

static int run(find_function find, void *handle) {
    struct route route;
    *(void **)&route.allocate = find(handle, "cuMemAlloc_v2");
    *(void **)&route.release = find(handle, "cuMemFree_v2");
    *(void **)&route.set = find(handle, "cuMemsetD8_v2");
    *(void **)&route.read = find(handle, "cuMemcpyDtoH_v2");
    return route_run(&route);
}

// The C library's own dlsym, taken by its version to get past anybody's hook.
static find_function versioned_dlsym(void *handle) {
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    find_function found = NULL;
    for (size_t i = 0; i < 3 && !found; i++)
        *(void **)&found = dlvsym(handle, "dlsym", versions[i]);
    return found ? found : dlsym;
}

typedef int (*old_resolver)(const char *, void **, int, unsigned long long);
typedef int (*resolver)(const char *, void **, int, unsigned long long, int *);

// Both forms of cuGetProcAddress, each asked for by the other, with versions and flags.
static void *resolve(void *libcuda, const char *name, int version, unsigned long long flags,
                     int way) {
    old_resolver old;
    resolver new;
    void *found = NULL;
    int status = -1;
    *(void **)&old = route_find(libcuda, "cuGetProcAddress");
    *(void **)&new = route_find(libcuda, "cuGetProcAddress_v2");
    if (way == 2)
        printf("new by old %d, ", old("cuGetProcAddress", (void **)&new, 12000, 0));
    if (way == 3)
        printf("old by new %d, ", new ("cuGetProcAddress", (void **)&old, 11030, 0, NULL));
    int result = way == 0 || way == 3 ? old(name, &found, version, flags)
                                      : new (name, &found, version, flags, &status);
    printf("%s %d %llu: %d, status %d, %s\n", name, version, flags, result, status,
           found ? "found" : "not found");
    return found;
}

static int run_resolved(void *libcuda) {
    struct route route;
    int result = 0;
    for (int way = 0; way < 4; way++)
        for (unsigned long long flags = 0; flags < 3; flags++) {
            *(void **)&route.allocate = resolve(libcuda, "cuMemAlloc", 3020, flags, way);
            *(void **)&route.release = resolve(libcuda, "cuMemFree", 12000, flags, way);
            *(void **)&route.set = resolve(libcuda, "cuMemsetD8", 12000, flags, way);
            *(void **)&route.read = resolve(libcuda, "cuMemcpyDtoH", 12000, flags, way);
            resolve(libcuda, "cuMemAlloc_v2", 12000, flags, way);
            resolve(libcuda, "", 0, flags, way);
            resolve(libcuda, "cuMemAlloc", 1000, flags, way);
            result |= route_run(&route);
        }
    return result;
}

int main(int count, char **arguments) {
    const char *way = count > 1 ? arguments[1] : "handle";
    int global = strcmp(way, "default") == 0 || strcmp(way, "process") == 0;
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
    if (!libcuda)
        route_fail("libcuda.so.1", dlerror());
    route_begin(libcuda);
    if (strcmp(way, "handle") == 0)
        return run(dlsym, libcuda);
    if (strcmp(way, "default") == 0)
        return run(dlsym, RTLD_DEFAULT);
    if (strcmp(way, "process") == 0)
        return run(dlsym, dlopen(NULL, RTLD_NOW));
    if (strcmp(way, "versioned") == 0)
        return run(versioned_dlsym(RTLD_DEFAULT), libcuda);
    if (strcmp(way, "versioned-next") == 0)
        return run(versioned_dlsym(RTLD_NEXT), libcuda);
    if (strcmp(way, "resolver") == 0)
        return run_resolved(libcuda);
    route_fail(way, "no such way");
}
