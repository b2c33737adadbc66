// What code compiled by nvcc calls when it starts and at <<<...>>>.
//
// Kernels are registered by the address of their host stub. The driver gets an image when the first
// of its kernels is wanted, and refuses it, as a device without a fitting image does, unless
// SIM_KERNELS=skip. Of an image that was unregistered the record stays, so that addresses lead
// nowhere wrong. Look-up is O(1) on average. Thread-safe.
#include "sim/runtime/nvcc.h"
#include "sim/runtime/runtime.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

// Its address is the handle that the program holds.
struct image {
    void *bytes; // NULL: unregistered
    CUlibrary library;
};

struct kernel {
    const void *host; // NULL: a free place
    const char *name;
    struct image *image;
    CUkernel kernel; // NULL: not asked for yet
};

struct variable {
    struct variable *next;
    const void *host;
    const char *name;
    size_t size;
    struct image *image;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct variable *variables;
static struct kernel *kernels; // open addressing, at most half full
static size_t count, room;     // room: a power of two

// ---- what is registered ----

static struct kernel *place_of(const void *host) {
    size_t at = (size_t)(((uintptr_t)host >> 4) * 0x9e3779b97f4a7c15u >> 20);
    while (kernels[at & (room - 1)].host != NULL && kernels[at & (room - 1)].host != host) {
        at++;
    }
    return &kernels[at & (room - 1)];
}

static bool make_room(void) {
    struct kernel *old = kernels;
    size_t old_room = room, wanted = room == 0 ? 64 : room * 2;
    if (count * 2 < room) {
        return true;
    }
    struct kernel *grown = calloc(wanted, sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    kernels = grown;
    room = wanted;
    for (size_t i = 0; i < old_room; i++) {
        if (old[i].host != NULL) {
            *place_of(old[i].host) = old[i];
        }
    }
    free(old);
    return true;
}

void **__cudaRegisterFatBinary(void *bytes) {
    struct image *image = calloc(1, sizeof *image);
    if (image != NULL) {
        image->bytes = bytes;
    }
    return (void **)image;
}

void __cudaRegisterFatBinaryEnd(void **handle) {
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle) {
    struct image *image = (struct image *)handle;
    if (image != NULL) {
        pthread_mutex_lock(&lock);
        image->bytes = NULL;
        pthread_mutex_unlock(&lock);
    }
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int limit, void *thread, void *block, void *block_size, void *grid_size,
                            int *warp) {
    (void)device, (void)limit, (void)thread, (void)block, (void)block_size, (void)grid_size,
        (void)warp;
    pthread_mutex_lock(&lock);
    if (handle != NULL && make_room()) {
        struct kernel *kernel = place_of(host);
        count += kernel->host == NULL;
        *kernel = (struct kernel){.host = host, .name = name, .image = (struct image *)handle};
    }
    pthread_mutex_unlock(&lock);
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                       size_t size, int constant, int global) {
    struct variable *variable = malloc(sizeof *variable);
    (void)device, (void)external, (void)constant, (void)global;
    if (variable == NULL) {
        return;
    }
    pthread_mutex_lock(&lock);
    *variable = (struct variable){variables, host, name, size, (struct image *)handle};
    variables = variable;
    pthread_mutex_unlock(&lock);
}

// ---- what the driver knows of it ----

// Loading is allowed while the thread captures.
static CUresult load(struct image *image) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    rt_driver.cuThreadExchangeStreamCaptureMode(&mode);
    CUresult result =
        rt_driver.cuLibraryLoadData(&image->library, image->bytes, NULL, NULL, 0, NULL, NULL, 0);
    rt_driver.cuThreadExchangeStreamCaptureMode(&mode);
    return result;
}

static CUresult find(struct kernel *kernel) {
    CUresult result = CUDA_SUCCESS;
    if (kernel->image->library == NULL) {
        result = load(kernel->image);
    }
    if (result == CUDA_SUCCESS && kernel->kernel == NULL) {
        result =
            rt_driver.cuLibraryGetKernel(&kernel->kernel, kernel->image->library, kernel->name);
    }
    return result;
}

cudaError_t rt_kernel(const void *host, CUfunction *out) {
    CUresult result = CUDA_SUCCESS;
    *out = (CUfunction)(uintptr_t)host; // of a library: the driver's own
    pthread_mutex_lock(&lock);
    struct kernel *kernel = room != 0 && host != NULL ? place_of(host) : NULL;
    if (kernel != NULL && kernel->host != NULL && kernel->image->bytes != NULL) {
        result = find(kernel);
        *out = (CUfunction)(void *)kernel->kernel;
    }
    pthread_mutex_unlock(&lock);
    return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

static cudaError_t get_kernel(cudaKernel_t *out, const void *host) {
    CUfunction function = NULL;
    cudaError_t result = rt_kernel(host, &function);
    *out = result == cudaSuccess ? (cudaKernel_t)(void *)function : NULL;
    return result;
}

RT_PLAIN(__cudaGetKernel, (cudaKernel_t * out, const void *host), get_kernel(out, host))
RT_PLAIN(cudaGetKernel, (cudaKernel_t * out, const void *host),
         out == NULL ? cudaErrorInvalidValue : get_kernel(out, host))
RT_PLAIN(cudaGetFuncBySymbol, (cudaFunction_t * out, const void *host),
         out == NULL ? cudaErrorInvalidValue : get_kernel((cudaKernel_t *)(void *)out, host))

static CUresult find_variable(const struct variable *variable, CUdeviceptr *start) {
    struct image *image = variable->image;
    CUresult result = image->library == NULL ? load(image) : CUDA_SUCCESS;
    return result == CUDA_SUCCESS
               ? rt_driver.cuLibraryGetGlobal(start, NULL, image->library, variable->name)
               : result;
}

cudaError_t rt_variable(const void *host, CUdeviceptr *start, size_t *size) {
    CUresult result = CUDA_ERROR_NOT_FOUND;
    pthread_mutex_lock(&lock);
    const struct variable *variable = variables;
    while (variable != NULL && (variable->host != host || variable->image->bytes == NULL)) {
        variable = variable->next;
    }
    if (variable != NULL) {
        *size = variable->size;
        result = find_variable(variable, start);
    }
    pthread_mutex_unlock(&lock);
    return result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : rt_code(result);
}

RT_CALL(cudaLibraryGetGlobal, (void **out, size_t *size, cudaLibrary_t library, const char *name),
        rt_code(rt_driver.cuLibraryGetGlobal((CUdeviceptr *)(void *)out, size, (CUlibrary)library,
                                             name)))

// ---- launches ----

// What <<<...>>> hands to the kernel's host stub.
static _Thread_local struct {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} pushed;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
    pushed.grid = grid;
    pushed.block = block;
    pushed.shared = shared;
    pushed.stream = stream;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
    *grid = pushed.grid;
    *block = pushed.block;
    *shared = pushed.shared;
    *(cudaStream_t *)stream = pushed.stream;
    return cudaSuccess;
}

char __cudaInitModule(void **handle) {
    (void)handle;
    return 0;
}
