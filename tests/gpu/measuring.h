// What the programs that measure a real driver have in common.
//
// One line of JSON for each figure on standard output: {"name": ..., "value" or "values": ...}.
// Times are in nanoseconds.
#ifndef BFC_TESTS_GPU_MEASURING_H
#define BFC_TESTS_GPU_MEASURING_H

#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SPIN_US = 50000 };

static CUcontext context;
static CUmodule module;
static CUfunction spin;

static void must(CUresult result, const char *what) {
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "%s: error %d\n", what, (int)result);
        exit(1);
    }
}
#define MUST(call) must(call, #call)

__attribute__((unused)) static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

__attribute__((unused)) static int compare(const void *one, const void *other) {
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return a < b ? -1 : a > b;
}

__attribute__((unused)) static uint64_t median(uint64_t *values, size_t count) {
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

__attribute__((unused)) static void say(const char *name, const char *detail, long long value) {
    printf("{\"name\": \"%s%s%s\", \"value\": %lld}\n", name, *detail ? ", " : "", detail, value);
    fflush(stdout);
}

static void start_spin_of(CUstream stream, uint64_t microseconds) {
    void *arguments[] = {&microseconds};
    MUST(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}

static void start_spin(CUstream stream) {
    start_spin_of(stream, SPIN_US);
}

static CUstream new_stream(void) {
    CUstream stream;
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

__attribute__((unused)) static bool has_room(size_t bytes) {
    size_t free_bytes, total;
    MUST(cuMemGetInfo(&free_bytes, &total));
    return free_bytes >= 2 * bytes;
}

// Calls that drivers have since 12.5, or NULL.
__attribute__((unused)) static CUresult (*record_context)(CUcontext, CUevent);
__attribute__((unused)) static CUresult (*wait_context)(CUcontext, CUevent);

static void find_newer(void) {
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOW);
    *(void **)&record_context = dlsym(libcuda, "cuCtxRecordEvent");
    *(void **)&wait_context = dlsym(libcuda, "cuCtxWaitEvent");
}

// The first device's primary context, and the kernel that keeps it busy, loaded.
static void begin_with(const char *kernels) {
    find_newer();
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoad(&module, kernels));
    MUST(cuModuleGetFunction(&spin, module, "spin"));
    CUstream stream = new_stream();
    start_spin(stream);
    MUST(cuStreamSynchronize(stream));
    MUST(cuStreamDestroy(stream));
}

#endif
