/*
 * Embeds the interpreter of the libpython that is its argument, lets it allocate, ends and unloads
 * it, and allocates on; twice.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void must(int holds, const char *what) {
    if (holds)
        return;
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void allocate(void) {
    for (int i = 0; i < 10; i++) {
        CUdeviceptr pointer;
        must(cuMemAlloc(&pointer, 4096) == CUDA_SUCCESS, "cuMemAlloc");
        must(cuMemFree(pointer) == CUDA_SUCCESS, "cuMemFree");
    }
}

static void *function(void *library, const char *name) {
    void *found = dlsym(library, name);
    must(found != NULL, name);
    return found;
}

static void embed(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    must(library != NULL, path);
    void (*begin)(int), (*end)(void);
    int (*run)(const char *);
    *(void **)&begin = function(library, "Py_InitializeEx");
    *(void **)&end = function(library, "Py_Finalize");
    *(void **)&run = function(library, "PyRun_SimpleString");
    allocate();
    begin(0);
    allocate();
    must(run("import sys") == 0, "Python");
    allocate();
    end();
    allocate();
    dlclose(library);
    allocate();
}

int main(int count, char **arguments) {
    CUdevice device;
    CUcontext context;
    must(count == 2 && !cuInit(0) && !cuDeviceGet(&device, 0) &&
             !cuDevicePrimaryCtxRetain(&context, device) && !cuCtxSetCurrent(context),
         "CUDA");
    embed(arguments[1]);
    embed(arguments[1]);
    puts(dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD) ? "still loaded" : "unloaded");
    return 0;
}
