/*
 * A context whose waits sleep (CU_CTX_SCHED_BLOCKING_SYNC): nothing that waits in it spins.
 */
#include "tests/conformance/gpu.h"

int main(void) {
    unsigned long long (*count)(const char *);
    size_t free_bytes, total;
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC));
    use_device(0);
    *(void **)&count = dlsym(RTLD_DEFAULT, "sim_call_count");
    if (!count)
        skip("the simulated device");
    MUST(release(new_block(1)));
    MUST(memory_info(&free_bytes, &total));
    hog(free_bytes - 136 * MIB);
    CUstream stream = new_stream();
    for (int round = 0; round < 5; round++) {
        void *block = new_block(128 * MIB); /* there is room for one */
        slow_fill(stream, block, MIB, 1, 5);
        MUST(release(block));
    }
    MUST(synchronize());
    tell("none spun", count("spinning_waits") == 0);
    return 0;
}
