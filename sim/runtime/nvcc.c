// What code compiled by nvcc calls when it starts and at <<<...>>>.
//
// Kernels are registered and never run: their image is not PTX text. A launch of one answers
// cudaErrorInvalidDeviceFunction, as a device without a fitting image does.
#include "sim/runtime/runtime.h"

#include <stdlib.h>

char __cudaInitModule(void **handle);
cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **parameters,
                               size_t shared, cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **parameters,
                                    size_t shared, cudaStream_t stream);
void **__cudaRegisterFatBinary(void *image);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int limit, void *thread, void *block, void *block_size, void *grid_size,
                            int *warp);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                       size_t size, int constant, int global);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);

void **__cudaRegisterFatBinary(void *image) {
    void **handle = malloc(sizeof *handle);
    if (handle != NULL) {
        *handle = image;
    }
    return handle;
}

void __cudaRegisterFatBinaryEnd(void **handle) {
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle) {
    free(handle);
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int limit, void *thread, void *block, void *block_size, void *grid_size,
                            int *warp) {
    (void)handle, (void)host, (void)device, (void)name, (void)limit, (void)thread, (void)block,
        (void)block_size, (void)grid_size, (void)warp;
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                       size_t size, int constant, int global) {
    (void)handle, (void)host, (void)device, (void)name, (void)external, (void)size, (void)constant,
        (void)global;
}

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

cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *host) {
    (void)host;
    *out = NULL;
    return rt_end(cudaErrorInvalidDeviceFunction);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **parameters,
                               size_t shared, cudaStream_t stream) {
    return cudaLaunchKernel(kernel, grid, block, parameters, shared, stream);
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **parameters,
                                    size_t shared, cudaStream_t stream) {
    return cudaLaunchKernel_ptsz(kernel, grid, block, parameters, shared, stream);
}
