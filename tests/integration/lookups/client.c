// Opens a CUDA runtime by its path and makes it start. usage: client LIBCUDART
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments) {
    void *runtime = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    int (*allocate)(void **, size_t), (*release)(void *), (*last_error)(void);
    void *pointer = NULL;
    if (!runtime)
        return fprintf(stderr, "%s\n", count > 1 ? dlerror() : "usage: client LIBCUDART"), 1;
    *(void **)&allocate = dlsym(runtime, "cudaMalloc");
    *(void **)&release = dlsym(runtime, "cudaFree");
    *(void **)&last_error = dlsym(runtime, "cudaGetLastError");
    printf("malloc %d\n", allocate(&pointer, 4096));
    printf("free %d\n", release(pointer));
    printf("last error %d\n", last_error());
    return 0;
}
