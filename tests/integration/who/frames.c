/* Allocates by functions of which some are inlined, and some named as those of a C++ library's
 * templates. */
#include <cuda.h>
#include <stdio.h>

#include "tests/integration/who/site.h"

static CUresult result;

/* thrust::detail::reserve(unsigned long) and Solver::step(), as C++ names them */
void reserve(unsigned long size) __asm__("_ZN6thrust6detail7reserveEm");
void step(void) __asm__("_ZN6Solver4stepEv");
void site_outer(void);

SITE void reserve(unsigned long size) {
    CUdeviceptr pointer;
    result = cuMemAlloc(&pointer, size);
    __asm__ volatile("" ::: "memory");
}

SITE void step(void) {
    reserve(64 << 20); // line: step
    __asm__ volatile("" ::: "memory");
}

__attribute__((always_inline)) static inline void fetch(unsigned long size) {
    CUdeviceptr pointer;
    result = cuMemAlloc(&pointer, size); // line: fetch
    __asm__ volatile("" ::: "memory");
}

SITE void site_outer(void) {
    fetch(32 << 20); // line: outer
    __asm__ volatile("" ::: "memory");
}

int main(void) {
    CUcontext context;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        return 1;
    step();
    site_outer();
    if (result)
        return 1;
    puts("ready");
    fflush(stdout);
    return getchar() != EOF;
}
