/* The third library of case 47. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>

int next_allocate(void **pointer, size_t bytes);
int next_release(void *pointer);

#ifdef ROUTE_DRIVER

int next_allocate(void **pointer, size_t bytes) {
    CUdeviceptr at = 0;
    int code = (int)(__extension__(__typeof__(&cuMemAlloc_v2))
                         dlsym(RTLD_NEXT, "cuMemAlloc_v2"))(&at, bytes);
    *pointer = (void *)(uintptr_t)at;
    return code;
}

int next_release(void *pointer) {
    return (int)(__extension__(__typeof__(&cuMemFree_v2))
                     dlsym(RTLD_NEXT, "cuMemFree_v2"))((CUdeviceptr)(uintptr_t)pointer);
}

#else

int next_allocate(void **pointer, size_t bytes) {
    return (__extension__(int (*)(void **, size_t)) dlsym(RTLD_NEXT, "cudaMalloc"))(pointer, bytes);
}

int next_release(void *pointer) {
    return (__extension__(int (*)(void *)) dlsym(RTLD_NEXT, "cudaFree"))(pointer);
}

#endif
