/* A library that allocates. */
#include <cuda.h>

void site_plugin(void);

void site_plugin(void) {
    CUdeviceptr pointer;
    cuMemAlloc(&pointer, (size_t)32 << 20);
    __asm__ volatile("" ::: "memory");
}
