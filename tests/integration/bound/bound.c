// Linked to the driver, as a program, as a library that one is linked to, or as a plug-in: calls
// it, and holds its functions' addresses in tables of each kind. usage of a program: bound WAY
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tests/integration/routes/route.h"

extern int cuMemAlloc_v2(uint64_t *, size_t), cuMemFree_v2(uint64_t);
extern int cuMemsetD8_v2(uint64_t, unsigned char, size_t);
extern int cuMemcpyDtoH_v2(void *, uint64_t, size_t);

int plugin_run(const char *way);

// Filled by the loader, in memory that stays writable and in memory that does not.
struct route bound_table = {cuMemAlloc_v2, cuMemFree_v2, cuMemsetD8_v2, cuMemcpyDtoH_v2};
const struct route bound_constants = {cuMemAlloc_v2, cuMemFree_v2, cuMemsetD8_v2, cuMemcpyDtoH_v2};

static struct route constructed;

__attribute__((constructor)) static void construct(void) {
    constructed = bound_table;
    constructed.release = cuMemFree_v2;
}

static int call_allocate(uint64_t *pointer, size_t bytes) {
    return cuMemAlloc_v2(pointer, bytes);
}

static int call_release(uint64_t pointer) {
    return cuMemFree_v2(pointer);
}

static struct route choose(const char *way) {
    if (strcmp(way, "calls") == 0)
        return (struct route){call_allocate, call_release, cuMemsetD8_v2, cuMemcpyDtoH_v2};
    if (strcmp(way, "table") == 0)
        return bound_table;
    if (strcmp(way, "constants") == 0)
        return bound_constants;
    if (strcmp(way, "constructed") == 0)
        return constructed;
    route_fail(way, "unknown way");
}

// A program that is not position-independent has an address of its own for the function.
static void compare(void *libcuda, int with_constructed) {
    int (*volatile in_code)(uint64_t) = cuMemFree_v2;
    int (*by_default)(uint64_t), (*by_handle)(uint64_t);
    *(void **)&by_default = dlsym(RTLD_DEFAULT, "cuMemFree_v2");
    *(void **)&by_handle = dlsym(libcuda, "cuMemFree_v2");
    printf("in code as in the table %d, the constants %d; by RTLD_DEFAULT %d, by handle %d\n",
           in_code == bound_table.release, in_code == bound_constants.release,
           in_code == by_default, in_code == by_handle);
    if (with_constructed)
        printf("constructed %d\n", in_code == constructed.release);
}

int plugin_run(const char *way) {
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!libcuda)
        route_fail("libcuda.so.1", dlerror());
    route_begin(libcuda);
    struct route route = choose(way);
    compare(libcuda, strcmp(way, "constructed") == 0);
    return route_run(&route);
}

#ifdef BOUND_PROGRAM
int main(int count, char **arguments) {
    return count > 1 ? plugin_run(arguments[1]) : 1;
}
#endif
