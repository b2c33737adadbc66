// What an allocation with its free costs, through the runtime and through the driver. Preloaded,
// cudaMalloc is answered before the runtime is entered, unless BFC_RUNTIME=off.
//
// One line of JSON: nanoseconds a pair, the median of many, with the device idle; each call of one
// through the runtime, beside a kernel of 5 ms; and whether a device is the driver's current one as
// soon as cudaSetDevice has returned, on which that rests.
// usage: pair KERNELS_PTX
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 21, PAIRS = 200, BYTES = 64 << 10, SPIN_US = 5000 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int compare(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static int by_runtime(void) {
    void *pointer;
    return cudaMalloc(&pointer, BYTES) != cudaSuccess || cudaFree(pointer) != cudaSuccess;
}

static int by_driver(void) {
    CUdeviceptr pointer;
    return cuMemAlloc(&pointer, BYTES) != CUDA_SUCCESS || cuMemFree(pointer) != CUDA_SUCCESS;
}

static double median_of(int (*pair)(void)) {
    static double took[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double begin = now();
        for (int i = 0; i < PAIRS; i++)
            if (pair())
                exit(1);
        took[round] = (now() - begin) / PAIRS;
    }
    qsort(took, ROUNDS, sizeof *took, compare);
    return took[ROUNDS / 2];
}

static CUstream stream;
static CUfunction spin;

static int load(const char *kernels) {
    CUmodule module;
    return cuModuleLoad(&module, kernels) != CUDA_SUCCESS ||
           cuModuleGetFunction(&spin, module, "spin") != CUDA_SUCCESS ||
           cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS;
}

static int begin_kernel(void) {
    uint64_t microseconds = SPIN_US;
    void *arguments[] = {&microseconds};
    return cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL) != CUDA_SUCCESS;
}

struct beside {
    double allocate, release;
};

// One cudaMalloc and one cudaFree at a time, while a kernel runs that uses neither.
static struct beside median_beside(void) {
    static double allocating[ROUNDS], freeing[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        void *pointer;
        if (begin_kernel())
            exit(1);
        double begin = now();
        if (cudaMalloc(&pointer, BYTES) != cudaSuccess)
            exit(1);
        double between = now();
        if (cudaFree(pointer) != cudaSuccess)
            exit(1);
        allocating[round] = between - begin;
        freeing[round] = now() - between;
        if (cuStreamSynchronize(stream) != CUDA_SUCCESS)
            exit(1);
    }
    qsort(allocating, ROUNDS, sizeof *allocating, compare);
    qsort(freeing, ROUNDS, sizeof *freeing, compare);
    return (struct beside){allocating[ROUNDS / 2], freeing[ROUNDS / 2]};
}

int main(int count, char **arguments) {
    CUcontext context = NULL;
    if (count != 2 || cudaSetDevice(0) != cudaSuccess)
        return 1;
    bool current = cuCtxGetCurrent(&context) == CUDA_SUCCESS && context;
    double runtime = median_of(by_runtime), driver = median_of(by_driver);
    if (load(arguments[1]))
        return 1;
    struct beside beside = median_beside();
    printf("{\"runtime_ns\": %.0f, \"driver_ns\": %.0f, \"malloc_beside_ns\": %.0f, "
           "\"free_beside_ns\": %.0f, \"set_device_is_current\": %s}\n",
           runtime, driver, beside.allocate, beside.release, current ? "true" : "false");
    return 0;
}
