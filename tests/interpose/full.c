/*
 * Fills a device of 1 GiB, frees every second block, and asks for more than any gap: prints what
 * the program gets. Then twice again, as programs that try do.
 */
#include "tests/interpose/program.h"

int main(void) {
    static CUdeviceptr blocks[64];
    const size_t block = (size_t)16 << 20;
    CUdeviceptr large = 0;
    int count = 0;
    use_primary(0);
    while (count < 64 && cuMemAlloc_v2(&blocks[count], block) == CUDA_SUCCESS)
        count++;
    for (int i = 0; i < count; i += 2)
        CHECK(cuMemFree_v2(blocks[i]));
    for (int i = 0; i < 3; i++)
        printf("%d\n", (int)cuMemAlloc_v2(&large, 12 * block));
    return 0;
}
