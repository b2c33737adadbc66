// The smallest use of a device: memory is allocated, filled, read back and freed, a few times. Ends
// with status 0 when the contents are right. ROUTE_DRIVER: by the driver, else by the runtime.
#ifdef ROUTE_DRIVER
#include <cuda.h>
#else
#include <cuda_runtime_api.h>
#endif
#include <stdio.h>
#include <string.h>

enum { TIMES = 8, BYTES = 3 << 20 };

static unsigned char pattern[BYTES], seen[BYTES];

#ifdef ROUTE_DRIVER
static int begin(void) {
    CUcontext context;
    CUresult result = cuInit(0);
    if (result == CUDA_SUCCESS)
        result = cuDevicePrimaryCtxRetain(&context, 0);
    return result == CUDA_SUCCESS ? (int)cuCtxSetCurrent(context) : (int)result;
}

static int round_trip(void) {
    CUdeviceptr block;
    CUresult result = cuMemAlloc(&block, BYTES);
    if (result == CUDA_SUCCESS)
        result = cuMemcpyHtoD(block, pattern, BYTES);
    if (result == CUDA_SUCCESS)
        result = cuMemcpyDtoH(seen, block, BYTES);
    return result == CUDA_SUCCESS ? (int)cuMemFree(block) : (int)result;
}
#else
static int begin(void) {
    return (int)cudaSetDevice(0);
}

static int round_trip(void) {
    void *block;
    cudaError_t result = cudaMalloc(&block, BYTES);
    if (result == cudaSuccess)
        result = cudaMemcpy(block, pattern, BYTES, cudaMemcpyHostToDevice);
    if (result == cudaSuccess)
        result = cudaMemcpy(seen, block, BYTES, cudaMemcpyDeviceToHost);
    return result == cudaSuccess ? (int)cudaFree(block) : (int)result;
}
#endif

int main(void) {
    int result = begin();
    for (int i = 0; result == 0 && i < TIMES; i++) {
        for (int byte = 0; byte < BYTES; byte++)
            pattern[byte] = (unsigned char)(byte * 31 + byte / 4096 + i);
        result = round_trip();
        if (result == 0 && memcmp(seen, pattern, BYTES) != 0) {
            printf("wrong contents in round %d\n", i);
            return 1;
        }
    }
    printf(result == 0 ? "contents are right\n" : "error %d\n", result);
    return result != 0;
}
