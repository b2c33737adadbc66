/* A library that allocates, and may say that it ends. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

void site_plugin(void);

void site_plugin(void) {
    CUdeviceptr pointer;
    cuMemAlloc(&pointer, (size_t)32 << 20);
    __asm__ volatile("" ::: "memory");
}

__attribute__((destructor)) static void tell(void) {
    const char *words = getenv("AT_END");
    if (words)
        fputs(words, stdout);
}
