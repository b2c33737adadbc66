// Finding the driver, as NVIDIA's runtime does it. Once a process; a failure is remembered.
#include "sim/runtime/runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

struct driver rt_driver;
static CUresult outcome = CUDA_SUCCESS;
static atomic_bool initialised;

typedef __typeof__(&cuGetProcAddress_v2) look_up_function;

static look_up_function first_look_up(void) {
    union {
        void *pointer;
        look_up_function function;
    } found = {NULL};
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library != NULL) {
        found.pointer = dlsym(library, "cuGetProcAddress_v2");
    }
    return found.function;
}

static void fill(void) {
    look_up_function look_up = rt_driver.look_up;
#define FILL(name, version, type) look_up(#name, (void **)&rt_driver.name, version, 0, NULL);
#define FILL_TWIN(name, version, type)                                                             \
    look_up(#name, (void **)&rt_driver.name[0], version, 0, NULL);                                 \
    look_up(#name, (void **)&rt_driver.name[1], version < 7000 ? 7000 : version,                   \
            CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL);
    DRIVER_FUNCTIONS(FILL, FILL_TWIN)
#undef FILL
#undef FILL_TWIN
}

static void load(void) {
    void *unused = NULL;
    union {
        void *pointer;
        look_up_function function;
    } again = {NULL};
    look_up_function look_up = first_look_up();
    if (look_up == NULL) {
        outcome = CUDA_ERROR_STUB_LIBRARY;
        return;
    }
    look_up("", &unused, 0, 0, NULL);
    look_up("cuGetProcAddress", &unused, 11030, 0, NULL);
    look_up("cuGetProcAddress", &again.pointer, 12000, 0, NULL);
    rt_driver.look_up = again.function != NULL ? again.function : look_up;
    fill();
    if (rt_driver.cuInit == NULL) {
        outcome = CUDA_ERROR_STUB_LIBRARY;
    }
}

cudaError_t rt_load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (outcome != CUDA_SUCCESS) {
        return cudaErrorInsufficientDriver;
    }
    // Asked again only after a failure: a device may have come up meanwhile.
    if (!atomic_load_explicit(&initialised, memory_order_acquire)) {
        CUresult result = rt_driver.cuInit(0);
        if (result != CUDA_SUCCESS) {
            return rt_code(result);
        }
        atomic_store_explicit(&initialised, true, memory_order_release);
    }
    return cudaSuccess;
}
