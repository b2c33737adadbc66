// The runtime, shared or static: cudaMalloc and cudaFree, and the entry points that it hands out.
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

#include "tests/integration/routes/route.h"

static int allocate(uint64_t *pointer, size_t bytes) {
    void *found = NULL;
    cudaError_t result = cudaMalloc(&found, bytes);
    *pointer = (uint64_t)(uintptr_t)found;
    return (int)result;
}

static int release(uint64_t pointer) {
    return (int)cudaFree((void *)(uintptr_t)pointer);
}

static int set(uint64_t pointer, unsigned char value, size_t count) {
    return (int)cudaMemset((void *)(uintptr_t)pointer, value, count);
}

static int read_back(void *to, uint64_t from, size_t bytes) {
    return (int)cudaMemcpy(to, (const void *)(uintptr_t)from, bytes, cudaMemcpyDeviceToHost);
}

static void *entry(const char *name, int version) {
    enum cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSuccess;
    void *found = NULL;
    cudaError_t result = version
                             ? cudaGetDriverEntryPointByVersion(name, &found, (unsigned)version,
                                                                cudaEnableDefault, &status)
                             : cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &status);
    printf("%s %d: %s, %d, %d\n", name, version, found ? "found" : "not found", (int)result,
           (int)status);
    return found;
}

static int run_entries(int version) {
    struct route route;
    *(void **)&route.allocate = entry("cuMemAlloc", version);
    *(void **)&route.release = entry("cuMemFree", version);
    *(void **)&route.set = entry("cuMemsetD8", version);
    *(void **)&route.read = entry("cuMemcpyDtoH", version);
    entry("cuNoSuchCall", version);
    if (!route.allocate || !route.release || !route.set || !route.read)
        route_fail("cudaGetDriverEntryPoint", "found nothing");
    return route_run(&route);
}

int main(int count, char **arguments) {
    const char *which = count > 1 ? arguments[1] : "";
    int result = 0;
    printf("first %d\n", (int)cudaFree(NULL));
    if (strcmp(which, "entry") == 0)
        result = run_entries(0);
    else if (strcmp(which, "version") == 0)
        result = run_entries(12000);
    else
        result = route_run(&(struct route){allocate, release, set, read_back});
    printf("last error %d\n", (int)cudaGetLastError());
    return result;
}
