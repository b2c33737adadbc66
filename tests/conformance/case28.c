/* A free waits for the device's work, other streams' too: programs rely on it [F rmm#1655]. */
#include "tests/conformance/gpu.h"

static void look(const char *what, CUstream stream, volatile unsigned *flag) {
    unsigned long long at;
    CUdeviceptr mapped;
    unsigned one = 1;
    *flag = 0;
    MUST(DRIVER(cuMemHostGetDevicePointer)(&mapped, (void *)(uintptr_t)flag, 0));
    at = mapped;
    void *block = new_block(1000);
    spin(stream, 20);
    MUST(launch(stream, "set_flag", (void *[]){&at, &one}));
    say(what, release(block));
    tell("earlier work is done", *flag == 1);
}

int main(void) {
    void *flag;
    use_device(0);
    MUST(DRIVER(cuMemHostAlloc)(&flag, sizeof(unsigned), CU_MEMHOSTALLOC_DEVICEMAP));
    look("free after work in the default stream", NULL, flag);
    look("free after work in a non-blocking stream", new_stream(), flag);
    look("free after work in a per-thread default stream", CU_STREAM_PER_THREAD, flag);
    return 0;
}
