/* A block freed, with work under way, before a capture; one allocated in it, and written by the
 * captured graph. The capture holds, and the new block is left alone. */
#include "tests/conformance/gpu.h"

static const size_t bytes = 100 * KIB;

static void look(CUstream busy) {
    CUstream captured = new_stream();
    CUgraph graph;
    CUgraphExec ready;
    void *before = new_block(bytes), *during = new_block(bytes);
    slow_fill(busy, before, bytes, 1, 20);
    slow_fill(busy, during, bytes, 1, 20);
    say("free before", release(before));
    MUST(begin_capture(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
    say("free within", release(during));
    void *block = new_block(bytes), *other = new_block(bytes);
    fill(captured, block, bytes, 2);
    fill(captured, other, bytes, 3);
    say("end of the capture", end_capture(captured, &graph));
    MUST(DRIVER(cuGraphInstantiateWithFlags)(&ready, graph, 0));
    MUST(DRIVER(cuGraphLaunch)(ready, captured));
    void *after = new_block(bytes);
    fill(captured, after, bytes, 4);
    MUST(synchronize());
    tell("the new blocks are intact",
         holds(block, bytes, 2) && holds(other, bytes, 3) && holds(after, bytes, 4));
    MUST(release(block));
    MUST(release(other));
    MUST(release(after));
    MUST(end_stream(captured));
}

int main(void) {
    use_device(0);
    kernel("fill");
    CUstream busy = new_stream();
    for (int round = 0; round < 2; round++)
        look(busy);
    return 0;
}
