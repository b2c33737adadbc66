// Weak references, by which programs ask whether they were linked to CUDA.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

extern int cudaMalloc(void **, size_t) __attribute__((weak));
extern int cudaFree(void *) __attribute__((weak));
extern int cudaSetDevice(int) __attribute__((weak));
extern int cuInit(unsigned) __attribute__((weak));
extern int cuMemAlloc_v2(uint64_t *, size_t) __attribute__((weak));
extern int cuMemFree_v2(uint64_t) __attribute__((weak));

#ifdef LINKED
// So that the linker keeps the driver among what is needed.
extern int cuDriverGetVersion(int *);
int (*probes_driver)(int *) = cuDriverGetVersion;
#endif

// What is probed for and found can be called: before cuInit it says so.
static void probe_driver(void) {
    uint64_t pointer = 0;
    if (!cuMemAlloc_v2 || !cuMemFree_v2) {
        puts("no driver was linked");
        return;
    }
    printf("before cuInit: allocate %d, free %d\n", cuMemAlloc_v2(&pointer, 100),
           cuMemFree_v2(0x1000));
    if (cuInit)
        printf("cuInit %d, allocate without a context %d\n", cuInit(0),
               cuMemAlloc_v2(&pointer, 100));
}

int main(void) {
    printf("weak cudaMalloc %d, cudaFree %d, cudaSetDevice %d\n", cudaMalloc != NULL,
           cudaFree != NULL, cudaSetDevice != NULL);
    probe_driver();
    return 0;
}
