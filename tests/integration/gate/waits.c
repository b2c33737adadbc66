/*
 * What the program's own waits for all work cost, and frees and allocations after them, counted by
 * the stand-in GPU, for each kind of such a wait, and what a burst of frees costs before one:
 * driver calls of any kind, and those that record, wait, ask or allocate.
 */
#include "tests/conformance/gpu.h"

enum { BLOCKS = 10 };
static const size_t bytes = MIB;

/* The driver itself is not in the global scope of a program of the runtime. */
static unsigned long long calls(const char *name) {
    unsigned long long (*count)(const char *);
    *(void **)&count = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "sim_call_count");
    return count(name);
}

struct counts {
    unsigned long long any, fences;
};

static struct counts count_all(void) {
    return (struct counts){calls("total"), calls("event_records") + calls("device_waits") +
                                               calls("waits") + calls("cuEventQuery") +
                                               calls("cuStreamQuery") + calls("cuMemAlloc_v2")};
}

static void print_since(const char *name, const char *what, struct counts before) {
    struct counts now = count_all();
    printf("%s, %s: %llu %llu\n", name, what, now.any - before.any, now.fences - before.fences);
}

static int by_context(void) {
    return synchronize();
}

static int by_driver(void) {
    return (int)DRIVER(cuCtxSynchronize)();
}

static int by_named_context(void) {
    int (*wait_for)(CUcontext);
    CUcontext current;
    MUST(DRIVER(cuCtxGetCurrent)(&current));
    *(void **)&wait_for = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuCtxSynchronize_v2");
    return wait_for(current);
}

static void take_all(void *blocks[BLOCKS]) {
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = new_block(bytes);
}

static void fill_all(void *blocks[BLOCKS], CUstream one, CUstream other) {
    for (int i = 0; i < BLOCKS; i++)
        fill(i % 2 ? one : other, blocks[i], bytes, 1);
}

static void free_all(void *blocks[BLOCKS]) {
    for (int i = 0; i < BLOCKS; i++)
        MUST(release(blocks[i]));
}

static void look(const char *name, int (*wait_for_all)(void), CUstream one, CUstream other) {
    void *blocks[BLOCKS];
    take_all(blocks);
    fill_all(blocks, one, other);
    struct counts before = count_all();
    free_all(blocks);
    print_since(name, "a burst of frees", before);
    before = count_all();
    MUST(wait_for_all());
    print_since(name, "the wait", before);
    before = count_all();
    take_all(blocks);
    print_since(name, "allocations after it", before);
    fill_all(blocks, one, other);
    MUST(wait_for_all());
    before = count_all();
    free_all(blocks);
    print_since(name, "frees after it", before);
}

int main(void) {
    use_device(0);
    CUstream one = new_stream(), other = new_stream();
    void *warm[BLOCKS];
    take_all(warm);
    fill_all(warm, one, other);
    free_all(warm);
    MUST(synchronize());
    look("context", by_context, one, other);
    look("driver", by_driver, one, other);
    look("named context", by_named_context, one, other);
    return 0;
}
