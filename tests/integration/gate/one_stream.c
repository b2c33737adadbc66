/*
 * Blocks that come, are used in one stream and go. A wrong byte ends the program with status 1.
 * usage: one_stream legacy|created ROUNDS
 */
#include "tests/conformance/gpu.h"

static void set_bytes(void *block, int value, size_t bytes, CUstream stream) {
#ifdef ROUTE_DRIVER
    MUST(cuMemsetD8Async(address(block), (unsigned char)value, bytes, stream));
#else
    MUST(cudaMemsetAsync(block, value, bytes, stream));
#endif
}

static void copy_back(unsigned char *byte, const void *block, CUstream stream) {
#ifdef ROUTE_DRIVER
    MUST(cuMemcpyDtoHAsync(byte, address(block), 1, stream));
#else
    MUST(cudaMemcpyAsync(byte, block, 1, cudaMemcpyDeviceToHost, stream));
#endif
}

static void check_last(const void *block, size_t bytes, int value, CUstream stream) {
    unsigned char last = 0;
    copy_back(&last, (const char *)block + bytes - 1, stream);
    MUST(DRIVER(cuStreamSynchronize)(stream));
    if (last != (unsigned char)value)
        exit(1);
}

/* Two blocks at once, of sizes that repeat. */
static void play(int round, CUstream stream) {
    size_t bytes = (size_t)(1 + round % 5) * 100 * KIB;
    void *one = new_block(bytes), *other = new_block(bytes / 2);
    fill(stream, one, bytes, (unsigned)round);
    set_bytes(other, round + 1, bytes / 2, stream);
    if (round % 10 == 9)
        check_last(one, bytes, round, stream);
    MUST(release(one));
    MUST(release(other));
}

int main(int count, char **arguments) {
    use_device(0);
    CUstream stream = count > 1 && strcmp(arguments[1], "created") == 0 ? new_stream() : NULL;
    for (int round = 0; count > 2 && round < atoi(arguments[2]); round++)
        play(round, stream);
    return 0;
}
