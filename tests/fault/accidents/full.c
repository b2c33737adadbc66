/*
 * Frees on a device without a byte to spare, with live blocks wherever memory is cached, beside a
 * capture that does not bar them: they succeed, and in `sync` they wait for work before them.
 */
#include "tests/conformance/gpu.h"

enum { SLOW_MS = 30, MOST = 1024, ROUNDS = 3 };

static const size_t bytes = 1 * MIB;

static size_t fill_device(void *blocks[MOST]) {
    size_t count = 0, least = 0;
    void *small;
    while (count < MOST && allocate(&blocks[count], bytes) == 0)
        count++;
    while (allocate(&small, 64 * KIB) == 0)
        least++;
    tell("the device is full", count > 8 && count < MOST && least < MOST);
    return count;
}

int main(void) {
    static void *blocks[MOST];
    size_t free_bytes, total;
    CUstreamCaptureMode own = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUgraph graph;
    CUevent done;
    use_device(0);
    CUstream busy = new_stream(), capturing = new_stream();
    MUST(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING));
    slow_fill(busy, new_block(1), 1, 0, 1);
    MUST(synchronize());
    MUST(memory_info(&free_bytes, &total));
    hog(free_bytes - 64 * MIB);
    size_t count = fill_device(blocks);
    MUST(cuThreadExchangeStreamCaptureMode(&own));
    MUST(begin_capture(capturing, CU_STREAM_CAPTURE_MODE_RELAXED));
    const char *mode = getenv("BFC_FREE");
    bool waits = !mode || strcmp(mode, "sync") == 0;
    for (size_t i = 0; i < ROUNDS; i++) {
        slow_fill(busy, blocks[2 * i], bytes, 1, SLOW_MS);
        MUST(cuEventRecord(done, busy));
        say("free", release(blocks[2 * i]));
        tell("  work before it is over", !waits || cuEventQuery(done) == CUDA_SUCCESS);
        MUST(cuStreamSynchronize(busy));
    }
    say("end of the capture", end_capture(capturing, &graph));
    say("malloc", allocate(&blocks[0], bytes));
    fill(busy, blocks[0], bytes, 2);
    MUST(cuStreamSynchronize(busy));
    tell("its contents are intact", holds(blocks[0], bytes, 2));
    tell("and a neighbour's place is free", release(blocks[count - 1]) == 0);
    return 0;
}
