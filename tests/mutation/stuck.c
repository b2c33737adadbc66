/*
 * The process exits while the helper thread waits in the driver for a kernel that never ends:
 * natively an exit waits for nothing, here for a moment.
 */
#include "tests/conformance/helper.h"

int main(void) {
    unsigned *flag;
    unsigned long long at;
    use_device(0);
    CUstream stream = new_stream();
    MUST(cuMemHostAlloc((void **)&flag, sizeof *flag, CU_MEMHOSTALLOC_DEVICEMAP));
    *flag = 0;
    at = address(flag);
    kernel("wait_flag");
    void *idle = new_block(64 * MIB);
    MUST(release(idle));
    unsigned wanted = 1;
    MUST(launch(stream, "wait_flag", (void *[]){&at, &wanted}));
    usleep(300000);
    puts("leaving");
    return 0;
}
