/* The question of cases 28 and 57: does a free wait for the device's work, other streams' too? */
#ifndef BFC_TESTS_CONFORMANCE_BARRIER_H
#define BFC_TESTS_CONFORMANCE_BARRIER_H

#include "tests/conformance/gpu.h"

enum { WORK_MS = 20 };

/* A word of the host's memory that kernels can write. */
static UNUSED volatile unsigned *new_flag(void) {
    void *flag;
    MUST(DRIVER(cuMemHostAlloc)(&flag, sizeof(unsigned), CU_MEMHOSTALLOC_DEVICEMAP));
    return flag;
}

/* Frees a block behind work in `stream` that sets the flag last, and prints whether it was set
 * then.
 */
static UNUSED void look_for_barrier(const char *what, CUstream stream, volatile unsigned *flag) {
    unsigned long long at;
    CUdeviceptr mapped;
    unsigned one = 1;
    *flag = 0;
    MUST(DRIVER(cuMemHostGetDevicePointer)(&mapped, (void *)(uintptr_t)flag, 0));
    at = mapped;
    void *block = new_block(1000);
    spin(stream, WORK_MS);
    MUST(launch(stream, "set_flag", (void *[]){&at, &one}));
    say(what, release(block));
    tell("earlier work is done", *flag == 1);
}

#endif
