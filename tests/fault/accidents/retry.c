/*
 * Everything that a free and an allocation can come to, each call made once more if it is refused:
 * with one refused driver call (refuse.py) no second call fails, and no memory is lost.
 */
#include "tests/conformance/gpu.h"

enum { REFUSED = 304, BLOCKS = 6 };

/* Whatever is refused once works the second time. */
#define AGAIN(call)                                                                                \
    do {                                                                                           \
        int code_ = (int)(call);                                                                   \
        if (code_ == REFUSED)                                                                      \
            code_ = (int)(call);                                                                   \
        must_(code_, #call, __FILE__, __LINE__);                                                   \
    } while (0)

static size_t free_now(void) {
    size_t free_bytes, total;
    AGAIN(memory_info(&free_bytes, &total));
    return free_bytes;
}

static void cycle(CUstream stream, size_t bytes) {
    void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        AGAIN(allocate(&blocks[i], bytes + (size_t)i * 1000));
        AGAIN(cuMemsetD8Async(address(blocks[i]), (unsigned char)i, bytes, stream));
    }
    for (int i = 0; i < BLOCKS; i++)
        if (i % 3 == 2)
            AGAIN(release_async(blocks[i], stream));
        else
            AGAIN(release(blocks[i]));
}

static void capture(CUstream stream) {
    CUgraph graph;
    void *block = NULL, *other = NULL;
    AGAIN(allocate(&other, 3000));
    AGAIN(begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    AGAIN(allocate(&block, 3000));
    AGAIN(release(other));
    AGAIN(release(block));
    AGAIN(end_capture(stream, &graph));
    AGAIN(cuGraphDestroy(graph));
}

static void own_context(void) {
    CUcontext context;
    void *kept, *freed;
    AGAIN(cuCtxCreate(&context, NULL, 0, 0));
    AGAIN(allocate(&kept, MIB));
    AGAIN(allocate(&freed, 3 * MIB));
    AGAIN(release(freed));
    AGAIN(cuCtxDestroy(context));
}

int main(void) {
    use_device(0);
    CUstream stream = new_stream();
    void *first = NULL;
    AGAIN(allocate(&first, 100));
    AGAIN(release(first));
    AGAIN(synchronize());
    size_t before = free_now();
    cycle(stream, 5000);
    capture(stream);
    own_context();
    cycle(stream, 3 * MIB);
    AGAIN(synchronize());
    size_t after = free_now();
    AGAIN(allocate(&first, after / 2));
    AGAIN(release(first));
    AGAIN(synchronize());
    /* Asked twice, since a refused question may make the first answer a low one. */
    tell("all memory came back", after + 4 * MIB >= before || free_now() + 4 * MIB >= before);
    return 0;
}
