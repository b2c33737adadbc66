/*
 * A training loop as programs without an allocator of their own write it: train [ITERATIONS
 * [WARM-UP [pause]]].
 *
 * Each iteration allocates its activations layer by layer, with a workspace that is freed at once,
 * and frees them in reverse while it goes back; sizes vary from one iteration to the next as
 * sequence lengths do. Layers run on several streams, ordered by events; copies and sets stand in
 * for kernels. What each layer left is copied out and compared with what it must be, so a block
 * handed out while someone still used it shows as a mismatch.
 *
 * Plain CUDA runtime API: nothing here knows of a pool. Prints one line of JSON when warm and one
 * at the end; with `pause` it waits for a line on standard input after each. Over sim the
 * lines also carry the driver's own counts.
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LAYERS = 12, STREAMS = 4, PIECE = 4096, SIGNATURE = 64 };

struct run {
    cudaStream_t streams[STREAMS];
    cudaEvent_t done[LAYERS];
    void *weights[LAYERS];     /* held all the time */
    void *activations[LAYERS]; /* of the iteration under way */
    unsigned char *left;       /* on the device: head and tail of each layer's activation */
    unsigned char *seen;       /* the same on the host, pinned */
    unsigned char expected[LAYERS][2][PIECE];
    uint64_t allocations, frees, mismatches, checksum;
    size_t held, most_held; /* bytes of device memory */
    double allocating_us;   /* in cudaMalloc and cudaFree */
};

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void check(cudaError_t error, const char *what) {
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "train: %s: %s\n", what, cudaGetErrorString(error));
    exit(1);
}

static void *allocate(struct run *run, size_t bytes) {
    void *address;
    double begin = now_us();
    check(cudaMalloc(&address, bytes), "cudaMalloc");
    run->allocating_us += now_us() - begin;
    run->allocations++;
    run->held += bytes;
    if (run->held > run->most_held)
        run->most_held = run->held;
    return address;
}

static void release(struct run *run, void *address, size_t bytes) {
    double begin = now_us();
    check(cudaFree(address), "cudaFree");
    run->allocating_us += now_us() - begin;
    run->frees++;
    run->held -= bytes;
}

/* 1 MiB to 36 MiB, odd sizes, a different length in each of 8 iterations. */
static size_t size_of(unsigned iteration, unsigned layer) {
    size_t length = 5 + iteration * 5 % 8;
    return (size_t)(layer % 4 + 1) * length * 750001;
}

static void copy(void *to, const void *from, cudaStream_t stream) {
    check(cudaMemcpyAsync(to, from, PIECE, cudaMemcpyDeviceToDevice, stream), "copy");
}

static void set(void *to, unsigned value, size_t bytes, cudaStream_t stream) {
    check(cudaMemsetAsync(to, (int)(value & 0xFF), bytes, stream), "set");
}

static unsigned head_mark(unsigned iteration, unsigned layer) {
    return iteration * 31 + layer;
}

static unsigned tail_mark(unsigned iteration, unsigned layer) {
    return iteration * 7 + layer + 1;
}

static void forward(struct run *run, unsigned iteration) {
    for (unsigned layer = 0; layer < LAYERS; layer++) {
        cudaStream_t stream = run->streams[layer % STREAMS];
        size_t bytes = size_of(iteration, layer);
        char *activation = run->activations[layer] = allocate(run, bytes);
        char *workspace = allocate(run, bytes / 3);
        set(workspace, tail_mark(iteration, layer), PIECE, stream);
        if (layer)
            check(cudaStreamWaitEvent(stream, run->done[layer - 1], 0), "wait");
        copy(activation, layer ? run->activations[layer - 1] : run->weights[0], stream);
        set(activation + layer * SIGNATURE, head_mark(iteration, layer), SIGNATURE, stream);
        copy(activation + bytes - PIECE, workspace, stream);
        check(cudaEventRecord(run->done[layer], stream), "record");
        release(run, workspace, bytes / 3);
    }
}

static void backward(struct run *run, unsigned iteration) {
    for (unsigned layer = LAYERS; layer-- > 0;) {
        cudaStream_t stream = run->streams[layer % STREAMS];
        size_t bytes = size_of(iteration, layer);
        char *activation = run->activations[layer];
        unsigned char *left = run->left + (size_t)layer * 2 * PIECE;
        void *gradient = allocate(run, bytes);
        copy(gradient, activation, stream);
        copy(left, gradient, stream);
        copy(left + PIECE, activation + bytes - PIECE, stream);
        release(run, gradient, bytes);
        release(run, activation, bytes);
    }
}

/* What the layers must have left: each passes on its predecessor's head, with its own mark. */
static void expect(struct run *run, unsigned iteration) {
    unsigned char head[PIECE];
    memset(head, 0x5A, sizeof head); /* the weights */
    for (unsigned layer = 0; layer < LAYERS; layer++) {
        memset(head + layer * SIGNATURE, (int)(head_mark(iteration, layer) & 0xFF), SIGNATURE);
        memcpy(run->expected[layer][0], head, PIECE);
        memset(run->expected[layer][1], (int)(tail_mark(iteration, layer) & 0xFF), PIECE);
    }
}

static void compare(struct run *run, unsigned iteration) {
    const unsigned char *expected = &run->expected[0][0][0];
    expect(run, iteration);
    for (size_t i = 0; i < sizeof run->expected; i++) {
        run->mismatches += run->seen[i] != expected[i];
        run->checksum = (run->checksum ^ run->seen[i]) * UINT64_C(1099511628211); /* FNV-1a */
    }
}

static void iterate(struct run *run, unsigned iteration) {
    forward(run, iteration);
    backward(run, iteration);
    check(cudaDeviceSynchronize(), "synchronize");
    check(cudaMemcpyAsync(run->seen, run->left, sizeof run->expected, cudaMemcpyDeviceToHost,
                          run->streams[0]),
          "copy out");
    check(cudaStreamSynchronize(run->streams[0]), "synchronize");
    compare(run, iteration);
}

static void prepare(struct run *run) {
    void *seen;
    for (unsigned i = 0; i < STREAMS; i++)
        check(cudaStreamCreateWithFlags(&run->streams[i], cudaStreamNonBlocking), "stream");
    for (unsigned i = 0; i < LAYERS; i++) {
        check(cudaEventCreateWithFlags(&run->done[i], cudaEventDisableTiming), "event");
        run->weights[i] = allocate(run, size_of(0, i));
        check(cudaMemset(run->weights[i], 0x5A, PIECE), "set");
    }
    check(cudaDeviceSynchronize(), "synchronize"); /* sets return early; our streams do not wait */
    run->left = allocate(run, sizeof run->expected);
    check(cudaMallocHost(&seen, sizeof run->expected), "cudaMallocHost");
    run->seen = seen;
    run->checksum = UINT64_C(14695981039346656037);
}

static void finish(struct run *run) {
    for (unsigned i = 0; i < LAYERS; i++) {
        release(run, run->weights[i], size_of(0, i));
        check(cudaEventDestroy(run->done[i]), "event");
    }
    for (unsigned i = 0; i < STREAMS; i++)
        check(cudaStreamDestroy(run->streams[i]), "stream");
    release(run, run->left, sizeof run->expected);
    check(cudaFreeHost(run->seen), "cudaFreeHost");
}

/* --- reporting --- */

/* The stand-in driver counts its calls; a real one does not tell: null. */
static void print_driver_count(const char *key, const char *name) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    unsigned long long (*count)(const char *) = NULL;
    if (driver)
        *(void **)&count = dlsym(driver, "sim_call_count");
    if (count)
        printf(", \"%s\": %llu", key, count(name));
    else
        printf(", \"%s\": null", key);
}

static void report(const struct run *run, const char *mark, unsigned iterations, double us) {
    printf("{\"mark\": \"%s\", \"iterations\": %u, \"us\": %.1f, \"allocations\": %" PRIu64
           ", \"frees\": %" PRIu64 ", \"mismatches\": %" PRIu64 ", \"checksum\": \"%016" PRIx64
           "\", \"allocating_us\": %.1f, \"most_held\": %zu",
           mark, iterations, us, run->allocations, run->frees, run->mismatches, run->checksum,
           run->allocating_us, run->most_held);
    print_driver_count("driver_allocations", "cuMemAlloc_v2");
    print_driver_count("driver_frees", "cuMemFree_v2");
    print_driver_count("driver_calls", "total");
    print_driver_count("driver_waits", "waits");
    puts("}");
    fflush(stdout);
}

static void wait_for_line(bool pause) {
    int c = pause ? getchar() : EOF;
    while (c != '\n' && c != EOF)
        c = getchar();
}

int main(int count, char **arguments) {
    static struct run run;
    unsigned iterations = count > 1 ? (unsigned)strtoul(arguments[1], NULL, 10) : 200;
    unsigned warm_up = count > 2 ? (unsigned)strtoul(arguments[2], NULL, 10) : 24;
    bool pause = count > 3 && strcmp(arguments[3], "pause") == 0;
    prepare(&run);
    for (unsigned i = 0; i < warm_up; i++)
        iterate(&run, i);
    report(&run, "warm", warm_up, 0);
    wait_for_line(pause);
    double begin = now_us();
    for (unsigned i = 0; i < iterations; i++)
        iterate(&run, warm_up + i);
    report(&run, "done", iterations, now_us() - begin);
    wait_for_line(pause);
    finish(&run);
    return run.mismatches != 0;
}
