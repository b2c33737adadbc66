/*
 * A free of an address at which no block starts fails at once, also beside a kernel that this
 * thread has to release.
 */
#include <stdatomic.h>

#include "tests/conformance/gpu.h"

int main(void) {
    unsigned long long device;
    unsigned one = 1;
    void *host;
    use_device(0);
    char *block = new_block(MIB);
    MUST(cuMemHostAlloc(&host, sizeof(unsigned), CU_MEMHOSTALLOC_DEVICEMAP));
    MUST(cuMemHostGetDevicePointer(&device, host, 0));
    atomic_store((atomic_uint *)host, 0);
    MUST(launch(new_stream(), "wait_flag", (void *[]){&device, &one}));
    say("odd", release(block + 1));
    say("inside", release(block + 4096 + 256));
    atomic_store((atomic_uint *)host, 1);
    say("the block", release(block));
    return 0;
}
