/* Every kind of copy and set between two blocks, or a block and the host; what is wrong ends the
 * program. */
#ifndef BFC_TESTS_SPILL_COPIES_H
#define BFC_TESTS_SPILL_COPIES_H

#include "tests/conformance/gpu.h"

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                              \
            fflush(stdout);                                                                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static const size_t block_bytes = 8 * MIB;

static void flat_copies(void *to, void *from, CUstream stream) {
    size_t half = block_bytes / 2;
    fill(stream, from, block_bytes, 3);
    MUST(DRIVER(cuMemcpyDtoDAsync)(address(to), address(from), half, stream));
    MUST(DRIVER(cuMemcpyAsync)(address(to) + half, address(from) + half, half, stream));
    MUST(DRIVER(cuStreamSynchronize)(stream));
    CHECK(holds(to, block_bytes, 3));
    MUST(DRIVER(cuMemsetD8)(address(from), 4, half));
    MUST(DRIVER(cuMemsetD32Async)(address(from) + half, 0x04040404, half / 4, stream));
    MUST(DRIVER(cuStreamSynchronize)(stream));
    MUST(DRIVER(cuMemcpy)(address(to), address(from), half));
    MUST(DRIVER(cuMemcpyDtoD)(address(to) + half, address(from) + half, half));
    MUST(synchronize());
    CHECK(holds(to, block_bytes, 4));
}

static void host_copies(void *block, CUstream stream) {
    unsigned char *host = malloc(block_bytes);
    memset(host, 5, block_bytes);
    MUST(DRIVER(cuMemcpyHtoD)(address(block), host, block_bytes / 2));
    MUST(
        DRIVER(cuMemcpyHtoDAsync)(address(block) + block_bytes / 2, host, block_bytes / 2, stream));
    MUST(DRIVER(cuStreamSynchronize)(stream));
    CHECK(holds(block, block_bytes, 5));
    memset(host, 0, block_bytes);
    MUST(DRIVER(cuMemcpyDtoHAsync)(host, address(block), block_bytes, stream));
    MUST(DRIVER(cuStreamSynchronize)(stream));
    CHECK(host[0] == 5 && host[block_bytes - 1] == 5);
    free(host);
}

static void solid_copies(void *to, void *from, CUstream stream) {
    CUDA_MEMCPY2D flat = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = address(from),
                          .srcPitch = 4096,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = address(to),
                          .dstPitch = 4096,
                          .WidthInBytes = 4096,
                          .Height = block_bytes / 4096};
    CUDA_MEMCPY3D deep = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = address(from),
                          .srcPitch = 4096,
                          .srcHeight = 16,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = address(to),
                          .dstPitch = 4096,
                          .dstHeight = 16,
                          .WidthInBytes = 4096,
                          .Height = 16,
                          .Depth = block_bytes / 4096 / 16};
    MUST(DRIVER(cuMemsetD2D8)(address(from), 4096, 6, 4096, block_bytes / 4096));
    MUST(synchronize());
    MUST(DRIVER(cuMemcpy2D)(&flat));
    MUST(synchronize());
    CHECK(holds(to, block_bytes, 6));
    MUST(DRIVER(cuMemsetD8)(address(from), 7, block_bytes));
    MUST(synchronize());
    MUST(DRIVER(cuMemcpy3DAsync)(&deep, stream));
    MUST(DRIVER(cuStreamSynchronize)(stream));
    CHECK(holds(to, block_bytes, 7));
}

static void peer_copy(void *to, void *from) {
    CUcontext context;
    MUST(DRIVER(cuCtxGetCurrent)(&context));
    MUST(DRIVER(cuMemsetD8)(address(from), 8, block_bytes));
    MUST(DRIVER(cuMemcpyPeer)(address(to), context, address(from), context, block_bytes));
    MUST(synchronize());
    CHECK(holds(to, block_bytes, 8));
}

/* A set and a copy, captured. */
static void graph_copy(void *to, void *from, CUstream stream) {
    CUgraph graph;
    CUgraphExec made;
    MUST(begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(DRIVER(cuMemsetD8Async)(address(from), 9, block_bytes, stream));
    fill(stream, from, block_bytes / 2, 9);
    MUST(DRIVER(cuMemcpyDtoDAsync)(address(to), address(from), block_bytes, stream));
    MUST(end_capture(stream, &graph));
    MUST(DRIVER(cuGraphInstantiate)(&made, graph, 0));
    MUST(DRIVER(cuGraphLaunch)(made, stream));
    MUST(DRIVER(cuStreamSynchronize)(stream));
    CHECK(holds(to, block_bytes, 9));
    MUST(DRIVER(cuGraphExecDestroy)(made));
    MUST(DRIVER(cuGraphDestroy)(graph));
}

/* The same without a capture: nodes that name the addresses. */
static void node_copy(void *to, void *from, CUstream stream) {
    CUgraph graph;
    CUgraphExec made;
    CUgraphNode set, copied;
    CUcontext context;
    CUDA_MEMSET_NODE_PARAMS value = {
        .dst = address(from), .elementSize = 1, .value = 10, .width = block_bytes, .height = 1};
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = address(from),
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = address(to),
                          .WidthInBytes = block_bytes,
                          .Height = 1,
                          .Depth = 1};
    MUST(DRIVER(cuCtxGetCurrent)(&context));
    MUST(DRIVER(cuGraphCreate)(&graph, 0));
    MUST(DRIVER(cuGraphAddMemsetNode)(&set, graph, NULL, 0, &value, context));
    MUST(DRIVER(cuGraphAddMemcpyNode)(&copied, graph, &set, 1, &copy, context));
    MUST(DRIVER(cuGraphInstantiate)(&made, graph, 0));
    MUST(DRIVER(cuGraphLaunch)(made, stream));
    MUST(DRIVER(cuStreamSynchronize)(stream));
    CHECK(holds(to, block_bytes, 10));
    MUST(DRIVER(cuGraphExecDestroy)(made));
    MUST(DRIVER(cuGraphDestroy)(graph));
}

/* A stream waits for a word in the one, and writes one in the other. */
static void stream_values(void *to, void *from, CUstream stream) {
    MUST(DRIVER(cuMemsetD8)(address(to), 0, block_bytes));
    MUST(DRIVER(cuMemsetD32)(address(from), 0x0b0b0b0b, 1));
    MUST(DRIVER(cuStreamWaitValue32)(stream, address(from), 0x0b0b0b0b, CU_STREAM_WAIT_VALUE_EQ));
    MUST(DRIVER(cuStreamWriteValue32)(stream, address(to), 0x0b0b0b0b, 0));
    MUST(DRIVER(cuStreamSynchronize)(stream));
    CHECK(holds(to, 4, 11));
}

#if CUDA_VERSION >= 13000
static void batch_copy(void *to, void *from, CUstream stream) {
    size_t half = block_bytes / 2, first = 0;
    CUdeviceptr targets[] = {address(to), address(to) + half};
    CUdeviceptr sources[] = {address(from), address(from) + half};
    size_t sizes[] = {half, half};
    CUmemcpyAttributes how = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    fill(stream, from, block_bytes, 12);
    MUST(DRIVER(cuMemcpyBatchAsync)(targets, sources, sizes, 2, &how, &first, 1, stream));
    MUST(DRIVER(cuStreamSynchronize)(stream));
    CHECK(holds(to, block_bytes, 12));
}
#endif

static void all_copies(void *to, void *from) {
    CUstream stream = new_stream();
    flat_copies(to, from, stream);
    solid_copies(to, from, stream);
    peer_copy(to, from);
    graph_copy(to, from, stream);
    node_copy(to, from, stream);
    stream_values(to, from, stream);
#if CUDA_VERSION >= 13000
    batch_copy(to, from, stream);
#endif
    MUST(end_stream(stream));
}

#endif
