/*
 * A notebook's kernel over PyTorch's caching allocator, as far as CUDA sees it: segments from
 * cudaMalloc of 2 MiB for small tensors, of 20 MiB for middle ones, and in steps of 2 MiB for large
 * ones; in them blocks that are split and merged, of one stream each; a block that another stream
 * used is kept until an event of that stream is complete; when the device is full, segments that
 * are wholly free go back, and it is asked again.
 *
 *   notebook MIB
 *
 * Holds MIB MiB of parameters. Each line of input is a number of training steps; the answer is a
 * hash of all parameters after them, which depends on nothing but the steps.
 */
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
enum { STREAMS = 3, PARAMETERS_MOST = 4096, WAITING_MOST = 64 };

/* ---- the allocator ---- */

struct block {
    char *start;
    size_t size;
    int stream;
    bool is_small, in_use;
    struct block *before, *after; /* in its segment */
    struct block *next;           /* in the list of all blocks */
};

static struct block *blocks;
static cudaStream_t streams[STREAMS];
static struct waiting {
    struct block *block;
    cudaEvent_t event;
} waiting[WAITING_MOST];

static void must(cudaError_t error, const char *what) {
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorName(error));
    exit(1);
}
#define MUST(call) must(call, #call)

static struct block *add_block(char *start, size_t size, int stream, bool is_small) {
    struct block *block = calloc(1, sizeof *block);
    if (!block)
        exit(1);
    *block = (struct block){start, size, stream, is_small, false, NULL, NULL, blocks};
    blocks = block;
    return block;
}

static void remove_block(struct block *block) {
    struct block **link = &blocks;
    while (*link != block)
        link = &(*link)->next;
    *link = block->next;
    free(block);
}

static void merge_with_next(struct block *block) {
    struct block *after = block->after;
    if (!after || block->in_use || after->in_use)
        return;
    block->size += after->size;
    block->after = after->after;
    if (block->after)
        block->after->before = block;
    remove_block(after);
}

static void make_free(struct block *block) {
    struct block *before = block->before;
    block->in_use = false;
    merge_with_next(block);
    if (before)
        merge_with_next(before);
}

static void end_events(bool wait) {
    for (int i = 0; i < WAITING_MOST; i++) {
        if (!waiting[i].block)
            continue;
        if (wait)
            MUST(cudaEventSynchronize(waiting[i].event));
        cudaError_t error = cudaEventQuery(waiting[i].event);
        if (error == cudaErrorNotReady)
            continue;
        must(error, "cudaEventQuery");
        MUST(cudaEventDestroy(waiting[i].event));
        make_free(waiting[i].block);
        waiting[i].block = NULL;
    }
}

static struct block *find_best(size_t size, int stream, bool is_small) {
    struct block *best = NULL;
    for (struct block *block = blocks; block; block = block->next)
        if (!block->in_use && block->stream == stream && block->is_small == is_small &&
            block->size >= size && (!best || block->size < best->size))
            best = block;
    return best;
}

static void empty_cache(void) {
    end_events(true);
    for (struct block *block = blocks, *next; block; block = next) {
        next = block->next;
        if (block->in_use || block->before || block->after)
            continue;
        MUST(cudaFree(block->start));
        remove_block(block);
    }
}

static struct block *add_segment(size_t size, int stream, bool is_small) {
    size_t bytes = is_small          ? 2 * MIB
                   : size < 10 * MIB ? 20 * MIB
                                     : (size + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
    void *start;
    if (cudaMalloc(&start, bytes) != cudaSuccess) {
        cudaGetLastError();
        empty_cache();
        MUST(cudaMalloc(&start, bytes));
    }
    return add_block(start, bytes, stream, is_small);
}

static struct block *allocate(size_t bytes, int stream) {
    size_t size = (bytes + 511) / 512 * 512;
    bool is_small = size <= MIB;
    end_events(false);
    struct block *block = find_best(size, stream, is_small);
    if (!block)
        block = add_segment(size, stream, is_small);
    if (block->size - size > (is_small ? 511 : MIB)) {
        struct block *rest = add_block(block->start + size, block->size - size, stream, is_small);
        rest->before = block;
        rest->after = block->after;
        if (rest->after)
            rest->after->before = rest;
        block->after = rest;
        block->size = size;
    }
    block->in_use = true;
    return block;
}

/* `user`: the last stream that used the block. */
static void release(struct block *block, int user) {
    if (user == block->stream) {
        make_free(block);
        return;
    }
    int i = 0;
    while (i < WAITING_MOST && waiting[i].block)
        i++;
    if (i == WAITING_MOST) {
        MUST(cudaStreamSynchronize(streams[user]));
        make_free(block);
        return;
    }
    MUST(cudaEventCreateWithFlags(&waiting[i].event, cudaEventDisableTiming));
    MUST(cudaEventRecord(waiting[i].event, streams[user]));
    waiting[i].block = block;
}

/* ---- the training ---- */

static uint64_t seed = 1;

static size_t below(size_t bound) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(seed >> 33) % bound;
}

static struct parameter {
    struct block *block;
    size_t bytes;
} parameters[PARAMETERS_MOST];
static int count;

static size_t draw_size(void) {
    size_t kind = below(10);
    return kind < 6   ? 1 + below(MIB / 2)
           : kind < 9 ? MIB + below(8 * MIB)
                      : 10 * MIB + below(6 * MIB);
}

static void make_parameters(size_t bytes) {
    for (size_t made = 0; made < bytes && count < PARAMETERS_MOST; count++) {
        size_t size = draw_size();
        parameters[count] = (struct parameter){allocate(size, 0), size};
        MUST(cudaMemsetAsync(parameters[count].block->start, count % 251 + 1, size, streams[0]));
        made += size;
    }
    MUST(cudaDeviceSynchronize());
}

static void order(int first, int then) {
    cudaEvent_t event;
    MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    MUST(cudaEventRecord(event, streams[first]));
    MUST(cudaStreamWaitEvent(streams[then], event, 0));
    MUST(cudaEventDestroy(event));
}

/* A parameter's part goes through activations in a side stream into another parameter. */
static void step(int number) {
    const struct parameter *from = &parameters[below((size_t)count)];
    const struct parameter *to = &parameters[below((size_t)count)];
    size_t bytes = from->bytes < to->bytes ? from->bytes : to->bytes;
    size_t part = 1 + below(bytes), at = below(bytes - part + 1);
    int side = 1 + number % (STREAMS - 1);
    struct block *activations = allocate(part, 0), *gradient = allocate(part, side);
    char host[64];
    MUST(cudaMemcpyAsync(activations->start, from->block->start + at, part,
                         cudaMemcpyDeviceToDevice, streams[0]));
    order(0, side);
    MUST(cudaMemcpyAsync(gradient->start, activations->start, part, cudaMemcpyDeviceToDevice,
                         streams[side]));
    memset(host, number % 256, sizeof host);
    MUST(cudaMemcpyAsync(gradient->start, host, part < sizeof host ? part : sizeof host,
                         cudaMemcpyHostToDevice, streams[side]));
    order(side, 0);
    MUST(cudaMemcpyAsync(to->block->start + at, gradient->start, part, cudaMemcpyDeviceToDevice,
                         streams[0]));
    release(activations, side);
    release(gradient, 0);
}

static unsigned long long hash_parameters(void) {
    uint64_t hash = 14695981039346656037u;
    char *host = malloc(16 * MIB);
    if (!host)
        exit(1);
    MUST(cudaDeviceSynchronize());
    for (int i = 0; i < count; i++) {
        MUST(cudaMemcpy(host, parameters[i].block->start, parameters[i].bytes,
                        cudaMemcpyDeviceToHost));
        for (size_t k = 0; k < parameters[i].bytes; k += 7)
            hash = (hash ^ (unsigned char)host[k]) * 1099511628211u;
    }
    free(host);
    return hash;
}

int main(int arguments, char **argument) {
    char line[64];
    int done = 0;
    for (int i = 0; i < STREAMS; i++)
        MUST(cudaStreamCreateWithFlags(&streams[i], i ? cudaStreamNonBlocking : cudaStreamDefault));
    make_parameters((arguments > 1 ? strtoull(argument[1], NULL, 10) : 100) * MIB);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        for (int end = done + atoi(line); done < end; done++)
            step(done);
        printf("%llu\n", hash_parameters());
        fflush(stdout);
    }
    return 0;
}
