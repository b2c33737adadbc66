/*
 * A free of what is no live block's start fails at once, also beside a kernel that this thread has
 * to release.
 */
#include <stdatomic.h>

#include "tests/conformance/gpu.h"

int main(void) {
    unsigned long long device;
    unsigned one = 1;
    void *host;
    use_device(0);
    char *block = new_block(MIB), *freed = new_block(MIB), *beside = new_block(MIB);
    char *gone = new_block(MIB), *again = new_block(2 * MIB);
    MUST(cuMemHostAlloc(&host, sizeof(unsigned), CU_MEMHOSTALLOC_DEVICEMAP));
    MUST(cuMemHostGetDevicePointer(&device, host, 0));
    MUST(release(freed));
    MUST(release(again));
    MUST(release(gone)); /* and may be one with the block behind it */
    atomic_store((atomic_uint *)host, 0);
    MUST(launch(new_stream(), "wait_flag", (void *[]){&device, &one}));
    say("odd", release(block + 1));
    say("inside", release(block + 4096 + 256));
    say("inside, where a block could start", release(block + 4096));
    say("a second time", release(freed));
    say("inside what is freed", release(freed + 512 * 1024));
    say("a second time, one with its neighbour", release(again));
    say("and that one", release(gone));
    atomic_store((atomic_uint *)host, 1);
    say("the block", release(block));
    say("the one beside", release(beside));
    return 0;
}
