/* Ten thousand cycles, and no error is left behind, though some were made and seen. */
#include "tests/conformance/gpu.h"

int main(void) {
    unsigned failed = 0;
    use_device(0);
    for (unsigned i = 0; i < 10000; i++) {
        void *block = NULL;
        failed += allocate(&block, 1 + i * 37 % 100000) != 0;
        failed += release(block) != 0;
    }
    printf("failed calls: %u\n", failed);
    say("last error", (int)cudaPeekAtLastError());
    say("free of a wild pointer", release((void *)(uintptr_t)4097));
    say("last error", (int)cudaGetLastError());
    say("last error again", (int)cudaGetLastError());
    return 0;
}
