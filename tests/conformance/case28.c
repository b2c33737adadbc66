/* A free waits for the device's work, other streams' too: programs rely on it [F rmm#1655]. */
#include "tests/conformance/barrier.h"

int main(void) {
    use_device(0);
    volatile unsigned *flag = new_flag();
    look_for_barrier("free after work in the default stream", NULL, flag);
    look_for_barrier("free after work in a non-blocking stream", new_stream(), flag);
    look_for_barrier("free after work in a per-thread default stream", CU_STREAM_PER_THREAD, flag);
    return 0;
}
