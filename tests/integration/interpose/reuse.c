/*
 * Frees blocks that streams are still writing to, and gives the memory to other streams at once:
 * what these write must stay. Natively the free waits; a pool that hands the block out too early
 * loses bytes.
 */
#include <string.h>

#include "tests/integration/interpose/program.h"

enum { STREAMS = 4, ROUNDS = 300, BYTES = 1 << 16 };

static unsigned count_wrong(CUdeviceptr block, unsigned char expected) {
    static unsigned char bytes[BYTES];
    unsigned wrong = 0;
    CHECK(cuMemcpyDtoH(bytes, block, sizeof bytes));
    for (size_t i = 0; i < sizeof bytes; i++)
        wrong += bytes[i] != expected;
    return wrong;
}

/* Many writes to a block on one stream, then the free while they wait in line. */
static void write_and_free(CUstream stream) {
    CUdeviceptr block;
    CHECK(cuMemAlloc(&block, BYTES));
    for (unsigned char i = 0; i < 20; i++)
        CHECK(cuMemsetD8Async(block, 0xee, BYTES, stream));
    CHECK(cuMemFree(block));
}

static unsigned use_another(CUstream stream, unsigned char value) {
    CUdeviceptr block;
    CHECK(cuMemAlloc(&block, BYTES));
    CHECK(cuMemsetD8Async(block, value, BYTES, stream));
    CHECK(cuStreamSynchronize(stream));
    unsigned wrong = count_wrong(block, value);
    CHECK(cuMemFree(block));
    return wrong;
}

int main(void) {
    CUstream streams[STREAMS];
    unsigned wrong = 0;
    use_primary(0);
    for (int i = 0; i < STREAMS; i++)
        CHECK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < ROUNDS; i++) {
        write_and_free(streams[i % STREAMS]);
        wrong += use_another(streams[(i + 1) % STREAMS], (unsigned char)i);
    }
    printf("wrong bytes %u\n", wrong);
    return 0;
}
