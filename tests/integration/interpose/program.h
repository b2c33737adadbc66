/* What the test programs share: a check that names the failed call and ends the program. */
#ifndef BFC_TESTS_INTERPOSE_PROGRAM_H
#define BFC_TESTS_INTERPOSE_PROGRAM_H

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

static inline void check(CUresult result, const char *call, int line) {
    if (result == CUDA_SUCCESS)
        return;
    printf("line %d: %s returned %d\n", line, call, (int)result);
    exit(1);
}
#define CHECK(call) check(call, #call, __LINE__)

/* Makes the first device's primary context current, and returns it. */
static inline CUcontext use_primary(CUdevice device) {
    CUcontext context;
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    return context;
}

#endif
