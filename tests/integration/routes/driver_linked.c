// The driver API, linked: bound by the loader.
#include <cuda.h>
#include <stdio.h>

#include "tests/integration/routes/route.h"

static int allocate(uint64_t *pointer, size_t bytes) {
    CUdeviceptr found = 0;
    CUresult result = cuMemAlloc(&found, bytes);
    *pointer = found;
    return (int)result;
}

static int release(uint64_t pointer) {
    return (int)cuMemFree(pointer);
}

static int set(uint64_t pointer, unsigned char value, size_t count) {
    return (int)cuMemsetD8(pointer, value, count);
}

static int read_back(void *to, uint64_t from, size_t bytes) {
    return (int)cuMemcpyDtoH(to, from, bytes);
}

int main(void) {
    CUcontext context;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        route_fail("no context", NULL);
    return route_run(&(struct route){allocate, release, set, read_back});
}
