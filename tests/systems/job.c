// A job to be looked at: holds memory of the device until a line comes on standard input.
#include <cuda.h>
#include <stdio.h>

enum { BLOCKS = 100, BYTES = 1 << 20 };

int main(void) {
    CUcontext context;
    CUdeviceptr blocks[BLOCKS];
    char line[2];
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        return 1;
    for (int i = 0; i < BLOCKS; i++)
        if (cuMemAlloc(&blocks[i], BYTES))
            return 1;
    puts("ready");
    fflush(stdout);
    return fgets(line, sizeof line, stdin) == NULL;
}
