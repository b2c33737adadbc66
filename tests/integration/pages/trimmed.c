/*
 * What one context has freed is available to another one, also while another thread is giving just
 * that memory back (BFC_TRIM_IDLE): then the pools of the two contexts find nothing to give back
 * themselves, and the device must be asked again.
 */
#include "tests/conformance/gpu.h"

int main(void) {
    CUcontext contexts[2];
    int refused = 0;
    use_device(0);
    for (int i = 0; i < 2; i++)
        MUST(CREATE_CONTEXT(&contexts[i], 0));
    for (unsigned round = 0; round < 100; round++) {
        void *block;
        MUST(cuCtxSetCurrent(contexts[round % 2]));
        bool served = allocate(&block, 200 * MIB) == CUDA_SUCCESS;
        refused += !served;
        if (served)
            MUST(release(block));
        usleep(round * 7 % 40 * 50);
    }
    printf("refused: %d\n", refused);
    return refused != 0;
}
