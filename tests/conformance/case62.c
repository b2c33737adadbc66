/*
 * A free waits for all work of its context [D], also where each block is larger than the last, so
 * that the memory of the earlier ones is too small for the next and may be given back.
 */
#include "tests/conformance/barrier.h"

enum { ROUNDS = 12, STEP = 8 * MIB };

int main(void) {
    CUstream stream;
    int waited = 0;
    use_device(0);
    MUST(make_stream(&stream));
    volatile unsigned *flag = new_flag();
    unsigned long long at;
    CUdeviceptr mapped;
    unsigned one = 1;
    MUST(DRIVER(cuMemHostGetDevicePointer)(&mapped, (void *)(uintptr_t)flag, 0));
    at = mapped;
    for (int i = 0; i < ROUNDS; i++) {
        *flag = 0;
        void *block = new_block((size_t)(ROUNDS + i) * STEP);
        spin(stream, 5);
        MUST(launch(stream, "set_flag", (void *[]){&at, &one}));
        MUST(release(block));
        waited += *flag == 1;
    }
    printf("%d of %d frees waited\n", waited, ROUNDS);
    return 0;
}
