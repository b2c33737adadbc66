/*
 * Work in another stream by one call, while frees in the only stream go on: with a library that
 * leaves that call without its hook, the check by samples has to find it.
 *
 * usage: unseen CALL
 */
#define ROUTE_DRIVER
#include "tests/conformance/gpu.h"

/* So many pieces of work, each of which the stand-in may delay, that the last is late. */
enum { PIECES = 60, FREES_TO_CHECK = 4096, FREES_A_LOOK = 32, LOOKS = 10 };
static const size_t bytes = KIB;

static CUstream stream;
static void *block;
static CUdeviceptr managed;
static CUgraphExec graph;

static void launch_kernel(void) {
    fill(stream, block, bytes, 1);
}

static void copy(void) {
    MUST(cuMemcpyDtoDAsync(address(block), address(block) + bytes / 2, bytes / 2, stream));
}

static void set(void) {
    MUST(cuMemsetD8Async(address(block), 1, bytes, stream));
}

static void launch_graph(void) {
    MUST(cuGraphLaunch(graph, stream));
}

static void operate(void) {
    CUstreamBatchMemOpParams write = {
        .writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = address(block)}};
    MUST(cuStreamBatchMemOp(stream, 1, &write, 0));
}

#if CUDA_VERSION < 13000
#define PREFETCH "cuMemPrefetchAsync"
static void prefetch(void) {
    MUST(cuMemPrefetchAsync(managed, bytes, 0, stream));
}
#else
#define PREFETCH "cuMemPrefetchAsync_v2"
static void prefetch(void) {
    CUmemLocation there = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    MUST(cuMemPrefetchAsync(managed, bytes, there, 0, stream));
}
#endif

static void do_nothing(void *unused) {
    (void)unused;
}

static void call_host(void) {
    MUST(cuLaunchHostFunc(stream, do_nothing, NULL));
}

static void make_graph(void) {
    CUgraph captured;
    MUST(begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    fill(stream, block, bytes, 1);
    MUST(end_capture(stream, &captured));
    MUST(cuGraphInstantiateWithFlags(&graph, captured, 0));
}

static void use(CUstream only, int frees) {
    for (int i = 0; i < frees; i++) {
        void *used = new_block(bytes);
        fill(only, used, bytes, 1);
        MUST(release(used));
    }
}

/* Until all work counts as that of one stream again, after the capture. */
static void settle(CUstream only) {
    for (int i = 0; i < 16; i++) {
        use(only, 1);
        MUST(synchronize());
    }
}

static void free_until_looked(void) {
    for (int i = 0; i < FREES_TO_CHECK + LOOKS * FREES_A_LOOK; i++) {
        MUST(release(new_block(bytes)));
        if (i >= FREES_TO_CHECK && i % FREES_A_LOOK == 0)
            usleep(30000);
    }
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*submit)(void);
    } calls[] = {{"cuLaunchKernel", launch_kernel},  {"cuMemcpyDtoDAsync_v2", copy},
                 {"cuMemsetD8Async", set},           {"cuGraphLaunch", launch_graph},
                 {"cuStreamBatchMemOp_v2", operate}, {PREFETCH, prefetch},
                 {"cuLaunchHostFunc", call_host}};
    use_device(0);
    CUstream only = new_stream();
    stream = new_stream();
    block = new_block(bytes);
    MUST(cuMemAllocManaged(&managed, bytes, CU_MEM_ATTACH_GLOBAL));
    make_graph();
    settle(only);
    for (size_t c = 0; count > 1 && c < sizeof calls / sizeof calls[0]; c++)
        if (strcmp(calls[c].name, arguments[1]) == 0)
            for (int i = 0; i < PIECES; i++)
                calls[c].submit();
    free_until_looked();
    return 0;
}
