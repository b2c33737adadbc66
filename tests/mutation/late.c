/*
 * Work submitted after a free waits on the device for work submitted after the next allocation. The
 * allocation may order later work behind what was under way at the free, and behind nothing else:
 * with a later fence both would wait for ever.
 */
#include "tests/conformance/gpu.h"

int main(void) {
    const size_t bytes = 100 * KIB;
    unsigned one = 1;
    CUdeviceptr mapped;
    void *flag;
    use_device(0);
    MUST(cuMemHostAlloc(&flag, sizeof(unsigned), CU_MEMHOSTALLOC_DEVICEMAP));
    MUST(cuMemHostGetDevicePointer(&mapped, flag, 0));
    unsigned long long at = mapped;
    CUstream first = new_stream(), second = new_stream(), third = new_stream();
    for (int round = 0; round < 3; round++) {
        *(volatile unsigned *)flag = 0;
        void *block = new_block(bytes);
        slow_fill(first, block, bytes, 1, 20);
        say("free", release(block));
        MUST(launch(second, "wait_flag", (void *[]){&at, &one}));
        block = new_block(bytes);
        fill(third, block, bytes, 2);
        MUST(launch(third, "set_flag", (void *[]){&at, &one}));
        MUST(synchronize());
        tell("all work has ended, and the new block is intact", holds(block, bytes, 2));
        MUST(release(block));
    }
    return 0;
}
