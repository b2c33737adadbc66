/*
 * What is freed in a stream's order is there again once the stream has come so far, whatever other
 * threads look at meanwhile: free memory is asked for, and others allocate, free and wait as this
 * thread does. Also beside a kernel of another stream that waits for the host, for which a region's
 * way back to the driver would wait. And what was freed while a stream captured. LOOKED_ROUNDS is
 * how often (default: 500). With LOOKED_ASKS the lookers ask the library to give memory back too.
 */
#include <stdatomic.h>

#define BFCPRELOAD_WEAK
#include "interpose/api/bfcpreload.h"
#include "tests/conformance/gpu.h"

enum { LOOKERS = 3, ALLOCATORS = 2 };
static const size_t bytes = 96 * MIB;
static atomic_bool over;
static atomic_uint failed;
static bool asks; /* natively there is nobody to ask */

static void *look(void *unused) {
    size_t free_bytes, total;
    choose_device(0);
    while (!atomic_load(&over)) {
        MUST(memory_info(&free_bytes, &total));
        if (asks)
            bfc_trim(SIZE_MAX);
    }
    return unused;
}

/* Frees in the order of the stream, waits for it, and allocates as much. */
static void go_round(void **block, CUstream stream) {
    MUST(release_async(*block, stream));
    MUST(DRIVER(cuStreamSynchronize)(stream));
    while (allocate(block, bytes) != 0)
        atomic_fetch_add(&failed, 1);
}

/* Frees while a stream captures, and allocates as much right after that. */
static void go_round_capturing(void **block, CUstream stream) {
    CUgraph graph;
    MUST(begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(release(*block));
    MUST(end_capture(stream, &graph));
    MUST(DRIVER(cuGraphDestroy)(graph));
    while (allocate(block, bytes) != 0)
        atomic_fetch_add(&failed, 1);
}

static void *allocate_too(void *unused) {
    choose_device(0);
    CUstream stream = new_stream();
    void *block = new_block(bytes);
    while (!atomic_load(&over))
        go_round(&block, stream);
    MUST(release_async(block, stream));
    MUST(DRIVER(cuStreamSynchronize)(stream));
    return unused;
}

static void go_rounds(unsigned rounds, void (*go)(void **block, CUstream stream),
                      void *(*work)(void *), unsigned count) {
    pthread_t threads[LOOKERS + ALLOCATORS];
    CUstream stream = new_stream();
    void *block = new_block(bytes);
    atomic_store(&over, false);
    atomic_store(&failed, 0);
    for (unsigned i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (unsigned round = 0; round < rounds; round++)
        go(&block, stream);
    atomic_store(&over, true);
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    MUST(release_async(block, stream));
    MUST(DRIVER(cuStreamSynchronize)(stream));
    MUST(end_stream(stream));
    printf("  %u beside: %u failed\n", count, atomic_load(&failed));
    fflush(stdout);
}

/* Leaves the device room for so many blocks and a little. */
static void leave(unsigned blocks) {
    size_t free_bytes, total;
    MUST(release(new_block(1)));
    MUST(memory_info(&free_bytes, &total));
    hog(free_bytes - blocks * bytes - 8 * MIB);
}

int main(void) {
    const char *text = getenv("LOOKED_ROUNDS");
    unsigned rounds = text ? (unsigned)strtoul(text, NULL, 10) : 500, one = 1;
    unsigned long long device;
    void *host, *others[ALLOCATORS]; /* leave no room but for one */
    use_device(0);
    asks = getenv("LOOKED_ASKS") && bfc_trim;
    leave(1 + ALLOCATORS);
    MUST(DRIVER(cuMemHostAlloc)(&host, sizeof(unsigned), CU_MEMHOSTALLOC_DEVICEMAP));
    MUST(DRIVER(cuMemHostGetDevicePointer)(&device, host, 0));
    atomic_uint *flag = host;
    atomic_store(flag, 0);
    for (int held = 0; held <= 1; held++) {
        puts(held ? "beside a kernel that waits for the host" : "alone on the device");
        if (held)
            MUST(launch(new_stream(), "wait_flag", (void *[]){&device, &one}));
        for (unsigned i = 0; i < ALLOCATORS; i++)
            others[i] = new_block(bytes);
        for (unsigned lookers = 1; lookers <= LOOKERS; lookers++)
            go_rounds(rounds, go_round, look, lookers);
        if (!held)
            go_rounds(rounds / 4, go_round_capturing, look, LOOKERS);
        for (unsigned i = 0; i < ALLOCATORS; i++)
            MUST(release_async(others[i], NULL));
        MUST(DRIVER(cuStreamSynchronize)(NULL));
        go_rounds(rounds, go_round, allocate_too, ALLOCATORS);
    }
    atomic_store(flag, 1);
    MUST(synchronize());
    return 0;
}
