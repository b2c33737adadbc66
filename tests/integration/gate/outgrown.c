/*
 * A program with one stream whose sizes vary, drawn from a seed, so that its pool outgrows regions.
 * It waits for its work before it frees, after, or never. Prints how many bytes are reserved at the
 * end, the most that were, and how many frees waited.
 *
 * usage: outgrown SEED
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "interpose/api/bfcpreload.h"

#define MUST(call)                                                                                 \
    do {                                                                                           \
        CUresult error = (call);                                                                   \
        if (error != CUDA_SUCCESS) {                                                               \
            fprintf(stderr, "%s: CUresult %d\n", #call, (int)error);                               \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

enum waits { NEVER, CONTEXT_BEFORE, STREAM_BEFORE, COPY_BEFORE, CONTEXT_AFTER, WAITS };
enum sizes { CLASSES, ANY, GROWING, SCALED, SMALL_AND_LARGE, SIZES };
enum { MOST_BLOCKS = 16384, SMALLEST = 512, POWERS = 15, FILLED = 4096 };

struct block {
    CUdeviceptr start;
    unsigned last; /* the iteration in which the block is freed */
};

static unsigned long long state;
static size_t classes[8];
static struct block blocks[MOST_BLOCKS];
static unsigned block_count, waiting_frees;
static unsigned long long (*calls_so_far)(const char *);

static unsigned below(unsigned bound) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)((state >> 33) % bound);
}

static size_t draw_size(enum sizes sizes, unsigned iteration, double scale) {
    switch (sizes) {
    case CLASSES:
        return classes[below(8)];
    case ANY:
        return ((size_t)SMALLEST << below(POWERS)) + below(100000);
    case GROWING:
        return (size_t)(iteration + 1) * (1000 + 10000 * below(7));
    case SCALED:
        return (size_t)(scale * (1 << (10 + below(12)))) + 64;
    case SMALL_AND_LARGE:
    case SIZES:
        break;
    }
    return below(5) ? 1000 + below(50000) : 1000000 + below(20000000);
}

static void allocate(size_t bytes, unsigned last, CUstream stream) {
    CUdeviceptr start;
    MUST(cuMemAlloc(&start, bytes));
    MUST(cuMemsetD8Async(start, 1, bytes < FILLED ? bytes : FILLED, stream));
    blocks[block_count++] = (struct block){start, last};
}

static void free_block(unsigned i) {
    unsigned long long before = calls_so_far("waits");
    MUST(cuMemFree(blocks[i].start));
    waiting_frees += calls_so_far("waits") != before;
    blocks[i] = blocks[--block_count];
}

static void wait_for(enum waits waits, CUstream stream) {
    char bytes[64];
    if (waits == CONTEXT_BEFORE)
        MUST(cuCtxSynchronize());
    if (waits == STREAM_BEFORE)
        MUST(cuStreamSynchronize(stream));
    if (waits == COPY_BEFORE && block_count)
        MUST(cuMemcpyDtoH(bytes, blocks[0].start, sizeof bytes));
}

static void iterate(unsigned iteration, unsigned count, enum sizes sizes, enum waits waits,
                    CUstream stream) {
    double scale = 0.3 + below(1000) / 700.0;
    for (unsigned i = 0; i < count; i++) {
        unsigned last = iteration + (below(8) ? 0 : 1 + below(10));
        allocate(draw_size(sizes, iteration, scale), last, stream);
        if (below(6) == 0)
            free_block(block_count - 1 - below(block_count < 4 ? block_count : 4));
    }
    wait_for(waits, stream);
    for (unsigned i = block_count; i-- > 0;)
        if (blocks[i].last <= iteration)
            free_block(i);
    if (waits == CONTEXT_AFTER)
        MUST(cuCtxSynchronize());
}

static void print_reserved(void) {
    struct bfcpreload_stats stats = {0};
    int (*ask)(int, struct bfcpreload_stats *, size_t);
    *(void **)&ask = dlsym(RTLD_DEFAULT, "bfc_stats");
    if (ask && ask(0, &stats, sizeof stats) == 0)
        printf("%llu %llu %u\n", (unsigned long long)stats.reserved,
               (unsigned long long)stats.peak_reserved, waiting_frees);
}

int main(int count, char **arguments) {
    CUcontext context;
    CUdevice device;
    CUstream stream = NULL;
    state = count > 1 ? strtoull(arguments[1], NULL, 10) * 977 + 13 : 13;
    enum sizes sizes = (enum sizes)below(SIZES);
    enum waits waits = (enum waits)below(WAITS);
    unsigned iterations = 20 + below(60), each = 5 + below(40);
    for (int i = 0; i < 8; i++)
        classes[i] = (size_t)SMALLEST << below(POWERS);
    *(void **)&calls_so_far = dlsym(RTLD_DEFAULT, "sim_call_count");
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    /* The copy goes to the legacy stream, which counts as one with a blocking stream alone. */
    if (below(2))
        MUST(cuStreamCreate(&stream,
                            waits == COPY_BEFORE ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < iterations; i++)
        iterate(i, each, sizes, waits, stream);
    print_reserved();
    return 0;
}
