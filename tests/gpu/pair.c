// What an allocation with its free costs, through the runtime and through the driver. Preloaded,
// cudaMalloc is answered before the runtime is entered, unless BFC_RUNTIME=off.
//
// One line of JSON: nanoseconds a pair, the median of many, with the device idle; and whether a
// device is the driver's current one as soon as cudaSetDevice has returned, on which that rests.
// usage: pair
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 21, PAIRS = 500, BYTES = 64 << 10 };

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

int main(void) {
    CUcontext context = NULL;
    if (cudaSetDevice(0) != cudaSuccess)
        return 1;
    bool current = cuCtxGetCurrent(&context) == CUDA_SUCCESS && context;
    double runtime = median_of(by_runtime), driver = median_of(by_driver);
    printf("{\"runtime_ns\": %.0f, \"driver_ns\": %.0f, \"set_device_is_current\": %s}\n", runtime,
           driver, current ? "true" : "false");
    return 0;
}
