/*
 * Pairs of cudaMalloc and cudaFree by way of a shared runtime, beside 1,000 live blocks: for
 * counting instructions, two rounds less one. usage: pair_runtime ROUNDS
 */
#include <cuda_runtime_api.h>
#include <stdlib.h>

enum { PAIRS = 100000, LIVE = 1000, BYTES = 65536 };

static void *allocate(void) {
    void *pointer = NULL;
    if (cudaMalloc(&pointer, BYTES) != cudaSuccess)
        exit(1);
    return pointer;
}

int main(int count, char **arguments) {
    int rounds = count > 1 ? atoi(arguments[1]) : 1;
    for (int i = 0; i < LIVE; i++)
        allocate();
    for (int i = 0; i < rounds * PAIRS; i++)
        if (cudaFree(allocate()) != cudaSuccess)
            return 1;
    return 0;
}
