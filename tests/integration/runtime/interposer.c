// A tool that stands before the runtime, as tracers do: its cudaMalloc has no version.
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

int cudaMalloc(void **pointer, size_t bytes);

static unsigned long seen;

int cudaMalloc(void **pointer, size_t bytes) {
    int (*next)(void **, size_t);
    *(void **)&next = dlsym(RTLD_NEXT, "cudaMalloc");
    seen++;
    return next(pointer, bytes);
}

__attribute__((destructor)) static void tell(void) {
    printf("the tool saw %lu allocations\n", seen);
}
