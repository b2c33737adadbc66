// Measures on a real driver what its documentation leaves open and the pool depends on: what
// waiting, recording and allocating cost, which calls wait, what barred calls answer, how pitched
// rows are laid out, how the driver takes a handle that is not its own.
//
// One line of JSON a figure on standard output: {"name": ..., "value" or "values": ...}. Times are
// the median of many, in nanoseconds. usage: measure KERNELS_PTX
#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TIMES = 401, SPIN_US = 50000 };

static CUcontext context;
static CUfunction spin;

// ---- small tools ----

static void must(CUresult result, const char *what) {
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "%s: error %d\n", what, (int)result);
        exit(1);
    }
}
#define MUST(call) must(call, #call)

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int compare(const void *one, const void *other) {
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return a < b ? -1 : a > b;
}

static uint64_t median(uint64_t *values, size_t count) {
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

static void say(const char *name, const char *detail, long long value) {
    printf("{\"name\": \"%s%s%s\", \"value\": %lld}\n", name, *detail ? ", " : "", detail, value);
    fflush(stdout);
}

// The median time of `call`, evaluated in this function.
#define MEDIAN(call)                                                                               \
    ({                                                                                             \
        static uint64_t took_[TIMES];                                                              \
        for (int i_ = 0; i_ < TIMES; i_++) {                                                       \
            uint64_t begin_ = now();                                                               \
            MUST(call);                                                                            \
            took_[i_] = now() - begin_;                                                            \
        }                                                                                          \
        (long long)median(took_, TIMES);                                                           \
    })

static void start_spin(CUstream stream) {
    uint64_t microseconds = SPIN_US;
    void *arguments[] = {&microseconds};
    MUST(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}

static CUstream new_stream(void) {
    CUstream stream;
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

// ---- calls that newer drivers have ----

static CUresult (*record_context)(CUcontext, CUevent);
static CUresult (*wait_context)(CUcontext, CUevent);
static CUresult (*open_handle)(CUdeviceptr *, CUipcMemHandle, unsigned);

static void *find_newer(void) {
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOW);
    *(void **)&record_context = dlsym(libcuda, "cuCtxRecordEvent");
    *(void **)&wait_context = dlsym(libcuda, "cuCtxWaitEvent");
    *(void **)&open_handle = dlsym(libcuda, "cuIpcOpenMemHandle_v2");
    return libcuda;
}

// ---- what waiting and recording cost ----

static void measure_marks(int streams) {
    char detail[64];
    CUevent event;
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    snprintf(detail, sizeof detail, "%d streams", streams);
    say("idle cuCtxSynchronize, ns", detail, MEDIAN(cuCtxSynchronize()));
    if (record_context) {
        say("cuCtxRecordEvent, ns", detail, MEDIAN(record_context(context, event)));
        MUST(cuEventSynchronize(event));
        say("cuEventQuery of a complete mark, ns", detail, MEDIAN(cuEventQuery(event)));
        say("cuEventSynchronize of a complete mark, ns", detail, MEDIAN(cuEventSynchronize(event)));
        if (wait_context)
            say("cuCtxWaitEvent, ns", detail, MEDIAN(wait_context(context, event)));
    }
    MUST(cuCtxSynchronize());
    MUST(cuEventDestroy(event));
}

static void measure_by_streams(void) {
    static const int counts[] = {0, 8, 64};
    CUstream streams[64];
    int made = 0;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        while (made < counts[i])
            streams[made++] = new_stream();
        measure_marks(made);
    }
    while (made > 0)
        MUST(cuStreamDestroy(streams[--made]));
}

// ---- allocating ----

static const size_t sizes[] = {512,     64 << 10, 1 << 20,        (1 << 20) + 1,
                               2 << 20, 64 << 20, (size_t)1 << 30};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void measure_allocations(void) {
    for (size_t i = 0; i < SIZES; i++) {
        char detail[64];
        static uint64_t allocating[51], freeing[51];
        for (int round = 0; round < 51; round++) {
            CUdeviceptr pointer;
            uint64_t begin = now();
            MUST(cuMemAlloc(&pointer, sizes[i]));
            uint64_t between = now();
            MUST(cuMemFree(pointer));
            allocating[round] = between - begin;
            freeing[round] = now() - between;
        }
        snprintf(detail, sizeof detail, "%zu bytes", sizes[i]);
        say("cuMemAlloc, ns", detail, (long long)median(allocating, 51));
        say("cuMemFree, ns", detail, (long long)median(freeing, 51));
    }
}

// Whether the free of a block that nobody uses waits for a kernel on another stream.
static void measure_waiting_frees(void) {
    CUstream stream = new_stream();
    for (size_t i = 0; i < SIZES; i++) {
        CUdeviceptr pointer, neighbour;
        char detail[64];
        MUST(cuMemAlloc(&neighbour, sizes[i]));
        MUST(cuMemAlloc(&pointer, sizes[i]));
        start_spin(stream);
        uint64_t begin = now();
        MUST(cuMemFree(pointer));
        long long took = (long long)(now() - begin);
        MUST(cuCtxSynchronize());
        MUST(cuMemFree(neighbour));
        snprintf(detail, sizeof detail, "%zu bytes", sizes[i]);
        say("cuMemFree beside a kernel of 50 ms, ns", detail, took);
    }
    MUST(cuStreamDestroy(stream));
}

static void measure_alignment(void) {
    CUdeviceptr pointers[256], bits = 0;
    for (int i = 0; i < 256; i++) {
        MUST(cuMemAlloc(&pointers[i], 1));
        bits |= pointers[i];
    }
    say("alignment of blocks of 1 byte", "", (long long)(bits & -bits));
    for (int i = 0; i < 256; i++)
        MUST(cuMemFree(pointers[i]));
}

static void measure_pitch(unsigned element) {
    size_t last = 0;
    printf("{\"name\": \"pitch from width, element %u\", \"values\": [", element);
    for (size_t width = element, first = 1; width <= 70000; width += width < 4200 ? element : 997) {
        CUdeviceptr pointer;
        size_t pitch;
        MUST(cuMemAllocPitch(&pointer, &pitch, width, 3, element));
        MUST(cuMemFree(pointer));
        if (pitch != last)
            printf("%s[%zu, %zu]", first ? "" : ", ", width, pitch), first = 0;
        last = pitch;
    }
    printf("]}\n");
}

// ---- what is barred while a stream captures ----

struct capture {
    CUstream stream;
    CUgraph graph;
};

static struct capture begin_capture(CUstreamCaptureMode mode) {
    struct capture capture = {new_stream(), NULL};
    MUST(cuStreamBeginCapture(capture.stream, mode));
    return capture;
}

// Also says whether the call has broken the capture.
static void end_capture(struct capture *capture, const char *call, const char *mode,
                        CUresult result) {
    char detail[96];
    snprintf(detail, sizeof detail, "%s, %s", mode, call);
    say("code during a capture", detail, result);
    say("code of the capture's end", detail, cuStreamEndCapture(capture->stream, &capture->graph));
    if (capture->graph)
        cuGraphDestroy(capture->graph);
    MUST(cuStreamDestroy(capture->stream));
}

static void measure_capture(CUstreamCaptureMode mode, const char *name) {
    CUdeviceptr kept, pointer = 0;
    size_t free_bytes, total;
    CUevent event;
    MUST(cuMemAlloc(&kept, 4096));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
#define DURING(call)                                                                               \
    do {                                                                                           \
        struct capture capture = begin_capture(mode);                                              \
        CUresult result = call;                                                                    \
        end_capture(&capture, #call, name, result);                                                \
    } while (0)
    DURING(cuMemAlloc(&pointer, 4096));
    if (pointer)
        MUST(cuMemFree(pointer));
    CUdeviceptr victim;
    MUST(cuMemAlloc(&victim, 4096));
    DURING(cuMemFree(victim));
    cuMemFree(victim); // may be free already
    DURING(cuCtxSynchronize());
    DURING(cuEventQuery(event));
    DURING(cuMemGetInfo(&free_bytes, &total));
    if (record_context)
        DURING(record_context(context, event));
    if (wait_context)
        DURING(wait_context(context, event));
#undef DURING
    MUST(cuEventDestroy(event));
    MUST(cuMemFree(kept));
}

// ---- whom a mark covers, and whose handles are taken ----

static void measure_destroyed_stream(void) {
    CUevent event;
    CUstream stream = new_stream();
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    start_spin(stream);
    MUST(cuStreamDestroy(stream));
    MUST(record_context(context, event));
    say("a mark covers work of a destroyed stream", "",
        cuEventQuery(event) == CUDA_ERROR_NOT_READY);
    MUST(cuEventSynchronize(event));
    MUST(cuEventDestroy(event));
}

static void measure_handles(void) {
    CUipcMemHandle token, real;
    CUdeviceptr pointer, opened = 0;
    memset(&token, 0x42, sizeof token);
    say("cuIpcOpenMemHandle of bytes that are no handle", "", open_handle(&opened, token, 1));
    memset(&token, 0, sizeof token);
    say("cuIpcOpenMemHandle of zeros", "", open_handle(&opened, token, 1));
    MUST(cuMemAlloc(&pointer, 2 << 20));
    CUresult result = cuIpcGetMemHandle(&real, pointer);
    say("cuIpcGetMemHandle", "", result);
    if (result == CUDA_SUCCESS) {
        int last = 0;
        for (int i = 0; i < (int)sizeof real; i++)
            if (((const unsigned char *)&real)[i])
                last = i + 1;
        say("bytes of a handle up to the last that is not zero", "", last);
        ((unsigned char *)&real)[sizeof real - 1] ^= 0x5a;
        say("cuIpcOpenMemHandle in another last byte, own process", "",
            open_handle(&opened, real, 1));
    }
    MUST(cuMemFree(pointer));
}

static void measure_entries(void *libcuda) {
    static const char *const names[][2] = {{"cuMemAlloc", "cuMemAlloc_v2"},
                                           {"cuMemFree", "cuMemFree_v2"},
                                           {"cuMemGetInfo", "cuMemGetInfo_v2"},
                                           {"cuCtxSynchronize", "cuCtxSynchronize"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *entry = NULL;
        CUresult result = cuGetProcAddress(names[i][0], &entry, 12000, 0, NULL);
        say("cuGetProcAddress and dlsym give the same pointer", names[i][0],
            result == CUDA_SUCCESS && entry == dlsym(libcuda, names[i][1]));
    }
}

static void begin(const char *kernels) {
    CUmodule module;
    int version;
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoad(&module, kernels));
    MUST(cuModuleGetFunction(&spin, module, "spin"));
    MUST(cuDriverGetVersion(&version));
    say("driver version", "", version);
    CUstream stream = new_stream();
    start_spin(stream); // loads the kernel
    MUST(cuStreamSynchronize(stream));
    MUST(cuStreamDestroy(stream));
}

int main(int count, char **arguments) {
    if (count != 2) {
        fprintf(stderr, "usage: measure KERNELS_PTX\n");
        return 2;
    }
    void *libcuda = find_newer();
    begin(arguments[1]);
    measure_entries(libcuda);
    measure_by_streams();
    measure_allocations();
    measure_alignment();
    measure_waiting_frees();
    if (record_context)
        measure_destroyed_stream();
    if (open_handle)
        measure_handles();
    measure_capture(CU_STREAM_CAPTURE_MODE_GLOBAL, "global");
    measure_capture(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, "thread local");
    measure_capture(CU_STREAM_CAPTURE_MODE_RELAXED, "relaxed");
    measure_pitch(4);
    measure_pitch(16);
    return 0;
}
