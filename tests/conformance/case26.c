/* The same with a graph's kernel as the slow work, launched twice. */
#include "tests/conformance/reuse.h"

int main(void) {
    const size_t bytes = 100 * KIB;
    CUgraph graph;
    CUgraphExec ready;
    use_device(0);
    kernel("fill"); /* loads the module: not allowed in a capture */
    CUstream slow = new_stream(), other = new_stream();
    void *block = new_block(bytes);
    MUST(begin_capture(slow, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    slow_fill(slow, block, bytes, OLD, SLOW_MS);
    say("end of the capture", end_capture(slow, &graph));
    MUST(DRIVER(cuGraphInstantiateWithFlags)(&ready, graph, 0));
    MUST(DRIVER(cuGraphLaunch)(ready, slow));
    MUST(DRIVER(cuGraphLaunch)(ready, slow));
    say("free", release(block));
    look_at_reuse(bytes, other);
    return 0;
}
