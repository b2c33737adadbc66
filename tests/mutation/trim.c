/*
 * The helper thread gives idle memory back (BFC_TRIM_IDLE) while the process's first capture
 * begins: its call, which has entered the driver but not got far (SIM_LATENCY), does the capture no
 * harm.
 */
#include "tests/conformance/helper.h"

int main(void) {
    CUgraph graph;
    use_device(0);
    CUstream stream = new_stream();
    void *block = new_block(4096);
    fill(stream, block, 4096, 1);
    MUST(synchronize());
    give_idle_memory();
    MUST(begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    fill(stream, block, 4096, 2);
    usleep(60000);
    fill(stream, block, 4096, 3);
    say("the capture", end_capture(stream, &graph));
    return 0;
}
