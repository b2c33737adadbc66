// What the runtime does not model: refused, and told to the driver.
#include "sim/runtime/runtime.h"

#include <dlfcn.h>
#include <stddef.h>

// The stand-in driver counts it; over another one it is only refused.
int rt_unmodelled(const char *name);
int rt_unmodelled(const char *name) {
    union {
        void *pointer;
        void (*function)(const char *);
    } note = {NULL};
    cudaError_t loaded = rt_load();
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (library != NULL) {
        note.pointer = dlsym(library, "sim_unmodelled_call");
    }
    if (note.pointer != NULL) {
        note.function(name);
    }
    return (int)rt_end(loaded != cudaSuccess ? loaded : cudaErrorNotSupported);
}
