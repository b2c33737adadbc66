/* Allocates, fills, checks and frees in a loop, then prints what a program's own mistakes come to.
 */
#include <string.h>

#include "tests/integration/interpose/program.h"

enum { BLOCKS = 100, ROUNDS = 20, BYTES = 1000 };

static void fill(const CUdeviceptr *blocks) {
    char bytes[BYTES];
    for (int i = 0; i < BLOCKS; i++) {
        memset(bytes, i, sizeof bytes);
        CHECK(cuMemcpyHtoD(blocks[i], bytes, sizeof bytes));
    }
}

static int count_wrong(const CUdeviceptr *blocks) {
    char bytes[BYTES], expected[BYTES];
    int wrong = 0;
    for (int i = 0; i < BLOCKS; i++) {
        memset(expected, i, sizeof expected);
        CHECK(cuMemcpyDtoH(bytes, blocks[i], sizeof bytes));
        wrong += memcmp(bytes, expected, sizeof bytes) != 0;
    }
    return wrong;
}

static void make_mistakes(CUdeviceptr freed, size_t total) {
    CUdeviceptr pointer;
    printf("double free %d\n", cuMemFree(freed));
    CHECK(cuMemAlloc(&pointer, 4096));
    printf("interior free %d\n", cuMemFree(pointer + 512));
    CHECK(cuMemFree(pointer));
    printf("free of zero %d\n", cuMemFree(0));
    printf("free of the stack's memory %d\n", cuMemFree((CUdeviceptr)(uintptr_t)&pointer));
    printf("all of size_t %d\n", cuMemAlloc(&pointer, SIZE_MAX));
    printf("more than the device %d\n", cuMemAlloc(&pointer, total + 1));
    printf("nothing %d\n", cuMemAlloc(&pointer, 0));
    printf("nowhere %d\n", cuMemAlloc(NULL, 100));
    CHECK(cuMemAlloc(&pointer, 100));
    CHECK(cuMemFree(pointer));
}

int main(void) {
    CUdeviceptr blocks[BLOCKS];
    size_t free_bytes, total;
    use_primary(0);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < BLOCKS; i++)
            CHECK(cuMemAlloc(&blocks[i], (size_t)BYTES * (size_t)(i + 1)));
        fill(blocks);
        printf("wrong %d\n", count_wrong(blocks));
        for (int i = BLOCKS - 1; i >= 0; i--)
            CHECK(cuMemFree(blocks[i]));
    }
    CHECK(cuMemGetInfo(&free_bytes, &total));
    CHECK(cuMemGetInfo(NULL, NULL));
    printf("free %zu of %zu\n", free_bytes, total);
    make_mistakes(blocks[0], total);
    CHECK(cuDevicePrimaryCtxRelease(0));
    printf("after its context %d\n", cuMemFree(blocks[0]));
    return 0;
}
