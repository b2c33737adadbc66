/*
 * A page gets no access and cannot be unmapped at once (SIM_FAIL): it goes back with its context at
 * the latest. Preloaded alone.
 */
#include "tests/conformance/gpu.h"

static size_t free_memory(void) {
    size_t bytes, total;
    MUST(memory_info(&bytes, &total));
    return bytes;
}

int main(void) {
    CUcontext first, second;
    CUdevice device;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(CREATE_CONTEXT(&first, device));
    MUST(CREATE_CONTEXT(&second, device));
    size_t before = free_memory();
    new_block(40 * MIB);
    MUST(cuCtxDestroy(second));
    MUST(cuCtxSetCurrent(first));
    tell("what a context had is free when it has ended", free_memory() == before);
    return 0;
}
