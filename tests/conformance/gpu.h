/*
 * What the conformance programs share: one spelling of each call for the three routes, kernels, and
 * a way to print what is observed.
 *
 * A program is built once a route: ROUTE_DRIVER calls the driver, else the runtime (shared or
 * static). What only the driver offers is called through DRIVER() on every route. The kernels are
 * sim/kernels.ptx, which runs on real devices and, by entry name, on the simulated one.
 *
 * A line that begins with "~ " is compared between native and preloaded only; all others also with
 * the expected output, which says what is documented or was seen on real devices.
 */
#ifndef BFC_TESTS_CONFORMANCE_GPU_H
#define BFC_TESTS_CONFORMANCE_GPU_H

#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifndef ROUTE_DRIVER
#include <cuda_runtime_api.h>
#endif

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define UNUSED __attribute__((unused))

/* ---- printing ---- */

/* The driver's and the runtime's numbers have been the same since CUDA 10.1. */
static const char *name_of(int code) {
    static __thread char number[24];
    switch (code) {
    case 0:
        return "success";
    case 1:
        return "invalid value";
    case 2:
        return "out of memory";
    case 3:
        return "not initialized";
    case 4:
        return "deinitialized";
    case 201:
        return "invalid context";
    case 500:
        return "not found";
    case 700:
        return "illegal address";
    case 709:
        return "context is destroyed";
    case 800:
        return "not permitted";
    case 801:
        return "not supported";
    case 900:
        return "capture unsupported";
    case 901:
        return "capture invalidated";
    default:
        snprintf(number, sizeof number, "code %d", code);
        return number;
    }
}

static UNUSED void say(const char *what, int code) {
    printf("%s: %s\n", what, name_of(code));
}

static UNUSED void tell(const char *what, bool yes) {
    printf("%s: %s\n", what, yes ? "yes" : "no");
}

/* A call that the case is not about: it must succeed. */
static UNUSED void must_(int code, const char *call, const char *file, int line) {
    if (code == 0)
        return;
    printf("%s:%d: %s: %s\n", file, line, call, name_of(code));
    fflush(stdout);
    _exit(1);
}
#ifndef MUST /* random programs, whose calls may be refused, make them again */
#define MUST(call) must_((int)(call), #call, __FILE__, __LINE__)
#endif

/* The case needs what this machine does not have. */
static UNUSED void skip(const char *needs) {
    printf("skipped: needs %s\n", needs);
    exit(77);
}

/* ---- the driver on every route ---- */

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#ifdef ROUTE_DRIVER
#define DRIVER(call) call
#else
static void *driver_symbol(const char *name) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *symbol = library ? dlsym(library, name) : NULL;
    if (!symbol) {
        printf("libcuda.so.1 lacks %s\n", name);
        fflush(stdout);
        _exit(1);
    }
    return symbol;
}
#define DRIVER(call) (__extension__(__typeof__(&(call))) driver_symbol(TEXT(call)))
#endif

/* CUDA 13 made the plain name stand for another call. */
#if CUDA_VERSION < 13000
#define CREATE_CONTEXT(context, device) DRIVER(cuCtxCreate)(context, 0, device)
#else
#define CREATE_CONTEXT(context, device) DRIVER(cuCtxCreate)(context, NULL, 0, device)
#endif

static UNUSED CUdeviceptr address(const void *pointer) {
    return (CUdeviceptr)(uintptr_t)pointer;
}

static UNUSED void *pointer_to(CUdeviceptr at) {
    return (void *)(uintptr_t)at;
}

/* ---- one spelling for the calls that the cases are about ---- */

#ifdef ROUTE_DRIVER

/* The first device's primary context becomes current, as the runtime would have it. */
static UNUSED void use_device(int device) {
    CUcontext context;
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
}
static UNUSED void choose_device(int device) {
    use_device(device);
}
static UNUSED int allocate(void **pointer, size_t bytes) {
    CUdeviceptr at = 0;
    int code = (int)cuMemAlloc(pointer ? &at : NULL, bytes);
    if (code == 0)
        *pointer = pointer_to(at);
    return code;
}
static UNUSED int release(void *pointer) {
    return (int)cuMemFree(address(pointer));
}
static UNUSED int allocate_pitched(void **pointer, size_t *pitch, size_t width, size_t height) {
    CUdeviceptr at = 0;
    int code = (int)cuMemAllocPitch(pointer ? &at : NULL, pitch, width, height, 4);
    if (code == 0)
        *pointer = pointer_to(at);
    return code;
}
static UNUSED int allocate_async(void **pointer, size_t bytes, CUstream stream) {
    CUdeviceptr at = 0;
    int code = (int)cuMemAllocAsync(&at, bytes, stream);
    *pointer = pointer_to(at);
    return code;
}
static UNUSED int release_async(void *pointer, CUstream stream) {
    return (int)cuMemFreeAsync(address(pointer), stream);
}
static UNUSED int memory_info(size_t *free_bytes, size_t *total) {
    return (int)cuMemGetInfo(free_bytes, total);
}
static UNUSED int synchronize(void) {
    return (int)cuCtxSynchronize();
}
static UNUSED int begin_capture(CUstream stream, CUstreamCaptureMode mode) {
    return (int)cuStreamBeginCapture(stream, mode);
}
static UNUSED int end_capture(CUstream stream, CUgraph *graph) {
    return (int)cuStreamEndCapture(stream, graph);
}
static UNUSED int make_stream(CUstream *stream) {
    return (int)cuStreamCreate(stream, CU_STREAM_NON_BLOCKING);
}
static UNUSED int end_stream(CUstream stream) {
    return (int)cuStreamDestroy(stream);
}
static UNUSED int reset_device(void) {
    CUcontext context;
    int code = (int)cuDevicePrimaryCtxReset(0);
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    return code;
}

#else

/* Without a call that a capture could bar. */
static UNUSED void choose_device(int device) {
    MUST(cudaSetDevice(device));
}
static UNUSED void use_device(int device) {
    choose_device(device);
    MUST(cudaFree(NULL));
}
static UNUSED int allocate(void **pointer, size_t bytes) {
    return (int)cudaMalloc(pointer, bytes);
}
static UNUSED int release(void *pointer) {
    return (int)cudaFree(pointer);
}
static UNUSED int allocate_pitched(void **pointer, size_t *pitch, size_t width, size_t height) {
    return (int)cudaMallocPitch(pointer, pitch, width, height);
}
static UNUSED int allocate_async(void **pointer, size_t bytes, CUstream stream) {
    return (int)cudaMallocAsync(pointer, bytes, stream);
}
static UNUSED int release_async(void *pointer, CUstream stream) {
    return (int)cudaFreeAsync(pointer, stream);
}
static UNUSED int memory_info(size_t *free_bytes, size_t *total) {
    return (int)cudaMemGetInfo(free_bytes, total);
}
static UNUSED int synchronize(void) {
    return (int)cudaDeviceSynchronize();
}
static UNUSED int begin_capture(CUstream stream, CUstreamCaptureMode mode) {
    return (int)cudaStreamBeginCapture(stream, (enum cudaStreamCaptureMode)mode);
}
static UNUSED int end_capture(CUstream stream, CUgraph *graph) {
    return (int)cudaStreamEndCapture(stream, graph);
}
static UNUSED int make_stream(CUstream *stream) {
    return (int)cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
}
static UNUSED int end_stream(CUstream stream) {
    return (int)cudaStreamDestroy(stream);
}
static UNUSED int reset_device(void) {
    return (int)cudaDeviceReset();
}

#endif

static UNUSED int device_count(void) {
    int count = 0;
    MUST(DRIVER(cuInit)(0));
    MUST(DRIVER(cuDeviceGetCount)(&count));
    return count;
}

static UNUSED CUstream new_stream(void) {
    CUstream stream;
    MUST(make_stream(&stream));
    return stream;
}

static UNUSED void *new_block(size_t bytes) {
    void *pointer = NULL;
    MUST(allocate(&pointer, bytes));
    return pointer;
}

/* Takes device memory that no pool is involved in, and keeps it. */
static UNUSED void hog(size_t bytes) {
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    MUST(DRIVER(cuMemCreate)(&handle, bytes / (2 * MIB) * (2 * MIB), &what, 0));
}

/* ---- kernels ---- */

/* KERNELS_PTX, the file's path, comes from the build. */
#ifdef KERNELS_PTX
__asm__(".section .rodata\n"
        ".global conformance_kernels\n"
        "conformance_kernels:\n"
        ".incbin \"" KERNELS_PTX "\"\n"
        ".byte 0\n"
        ".previous\n");
#endif
extern const char conformance_kernels[];

/* A module is loaded once a context, known by its id, which is never used again. */
static UNUSED CUfunction kernel(const char *name) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        unsigned long long id;
        CUmodule module;
    } loaded[64];
    static unsigned count;
    CUcontext context;
    CUfunction function;
    unsigned long long id;
    unsigned i = 0;
    MUST(DRIVER(cuCtxGetCurrent)(&context));
    MUST(DRIVER(cuCtxGetId)(context, &id));
    pthread_mutex_lock(&lock);
    while (i < count && loaded[i].id != id)
        i++;
    if (i == count) {
        MUST(DRIVER(cuModuleLoadData)(&loaded[i].module, conformance_kernels));
        loaded[i].id = id;
        count++;
    }
    pthread_mutex_unlock(&lock);
    MUST(DRIVER(cuModuleGetFunction)(&function, loaded[i].module, name));
    return function;
}

static UNUSED int launch(CUstream stream, const char *name, void **arguments) {
    return (int)DRIVER(cuLaunchKernel)(kernel(name), 1, 1, 1, 64, 1, 1, 0, stream, arguments, NULL);
}

/* Bytes become `value`. */
static UNUSED void fill(CUstream stream, void *pointer, size_t bytes, unsigned value) {
    unsigned long long at = address(pointer), count = bytes;
    MUST(launch(stream, "fill", (void *[]){&at, &count, &value}));
}

/* The same, but only after some time on the device. */
static UNUSED void slow_fill(CUstream stream, void *pointer, size_t bytes, unsigned value,
                             unsigned ms) {
    unsigned long long at = address(pointer), count = bytes, us = ms * 1000ull;
    MUST(launch(stream, "slow_fill", (void *[]){&at, &count, &value, &us}));
}

static UNUSED void spin(CUstream stream, unsigned ms) {
    unsigned long long us = ms * 1000ull;
    MUST(launch(stream, "spin", (void *[]){&us}));
}

/* How many bytes are not `value`, once everything is done. */
static UNUSED size_t wrong_bytes(const void *pointer, size_t bytes, unsigned value) {
    size_t wrong = 0;
    unsigned char *copy = malloc(bytes);
    MUST(DRIVER(cuMemcpyDtoH)(copy, address(pointer), bytes));
    for (size_t i = 0; i < bytes; i++)
        wrong += copy[i] != (unsigned char)value;
    free(copy);
    return wrong;
}

static UNUSED bool holds(const void *pointer, size_t bytes, unsigned value) {
    return wrong_bytes(pointer, bytes, value) == 0;
}

/* ---- threads ---- */

/* Runs `work` in a new thread, to its end. */
static UNUSED void in_thread(void *(*work)(void *), void *argument) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, argument);
    pthread_join(thread, NULL);
}

#endif
