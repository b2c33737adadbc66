/*
 * Two contexts of one device: what one has freed the other can have, by whatever call, and is told
 * that it can have; also while the work that used it is under way, which a free waits for [F].
 */
#include "tests/conformance/gpu.h"

enum { ROUNDS = 30, PATIENCE_MS = 60000 };

static CUcontext contexts[2];
static CUstream streams[2];

/* Most of the device's memory, but not so much that a second context could not be made. */
static size_t most;

static size_t free_now(void) {
    size_t free_bytes, total;
    MUST(memory_info(&free_bytes, &total));
    return free_bytes;
}

static void allocate_and_free(int which, bool busy) {
    MUST(cuCtxSetCurrent(contexts[which]));
    void *block = new_block(most);
    if (busy)
        slow_fill(streams[which], block, KIB, 1, 10);
    MUST(release(block));
}

/* What was freed in one context is had in the other one by `take`. */
static void look(const char *what, int (*take)(void)) {
    for (int busy = 0; busy < 2; busy++) {
        allocate_and_free(0, busy);
        MUST(cuCtxSetCurrent(contexts[1]));
        printf("%s, %s: %s\n", what, busy ? "at once" : "at rest", name_of(take()));
    }
}

static int by_malloc(void) {
    void *block = NULL;
    int code = allocate(&block, most);
    if (code == 0)
        MUST(release(block));
    MUST(synchronize());
    return code;
}

static int by_malloc_async(void) {
    void *block = NULL;
    CUmemoryPool pool;
    int code = allocate_async(&block, most, streams[1]);
    if (code == 0)
        MUST(release_async(block, streams[1]));
    MUST(synchronize());
    MUST(cuDeviceGetDefaultMemPool(&pool, 0));
    MUST(cuMemPoolTrimTo(pool, 0));
    return code;
}

static int by_create(void) {
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    int code = (int)cuMemCreate(&handle, most / (2 * MIB) * (2 * MIB), &what, 0);
    if (code == 0)
        MUST(cuMemRelease(handle));
    return code;
}

/* Both at once, though there is room for one: each has it in turn. */
static void *insist(void *context) {
    MUST(cuCtxSetCurrent(context));
    for (int round = 0; round < ROUNDS; round++) {
        void *block = NULL;
        int code = 2;
        for (int ms = 0; ms < PATIENCE_MS && (code = allocate(&block, most)) == 2; ms++)
            usleep(1000);
        MUST(code);
        MUST(release(block));
    }
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    use_device(0);
    MUST(cuCtxGetCurrent(&contexts[0]));
    streams[0] = new_stream();
    kernel("slow_fill");
    MUST(cuCtxCreate(&contexts[1], NULL, 0, 0));
    streams[1] = new_stream();
    most = free_now() / 4 * 3;

    allocate_and_free(0, false);
    MUST(cuCtxSetCurrent(contexts[1]));
    tell("the other context is told of what was freed", free_now() >= most);
    look("cuMemAlloc", by_malloc);
    look("cuMemAllocAsync", by_malloc_async);
    look("cuMemCreate", by_create);

    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, insist, contexts[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    puts("both had it in turn");
    return 0;
}
