/*
 * One of several processes that share a device which is too small for all of them: in each round it
 * takes blocks, fills them, looks whether they still hold what was put there, and frees them. When
 * there is no memory it frees what it has and goes on.
 *
 *   share ROUNDS MOST_MIB BLOCKS SEED
 *
 * Each round takes BLOCKS blocks of up to MOST_MIB each. Prints how many allocations there were,
 * how many of them were refused, how long the longest one took, in milliseconds, and how many
 * blocks did not hold what they should.
 */
#include <string.h>
#include <time.h>

#include "tests/integration/interpose/program.h"

enum { MOST_BLOCKS = 64, MIB = 1 << 20, SAMPLE = 4096 };

struct block {
    CUdeviceptr start;
    size_t bytes;
    unsigned char content;
};

static struct block blocks[MOST_BLOCKS];
static int count;
static unsigned long allocations, refused, wrong;
static double longest_ms;
static unsigned long long state;

static unsigned long draw(unsigned long most) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned long)(state >> 33) % most;
}

static double now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static int take(size_t bytes) {
    struct block *block = &blocks[count];
    double began = now_ms();
    int result = (int)cuMemAlloc(&block->start, bytes);
    double took = now_ms() - began;
    longest_ms = took > longest_ms ? took : longest_ms;
    allocations++;
    if (result != CUDA_SUCCESS) {
        refused++;
        return 0;
    }
    block->bytes = bytes;
    block->content = (unsigned char)draw(256);
    CHECK(cuMemsetD8(block->start, block->content, bytes));
    count++;
    return 1;
}

/* Its first and last bytes. */
static int holds(const struct block *block) {
    unsigned char seen[2 * SAMPLE];
    CHECK(cuMemcpyDtoH(seen, block->start, SAMPLE));
    CHECK(cuMemcpyDtoH(seen + SAMPLE, block->start + block->bytes - SAMPLE, SAMPLE));
    for (size_t i = 0; i < sizeof seen; i++)
        if (seen[i] != block->content)
            return 0;
    return 1;
}

static void give(int index) {
    wrong += !holds(&blocks[index]);
    CHECK(cuMemFree(blocks[index].start));
    blocks[index] = blocks[--count];
}

static void play_round(unsigned long most_mib, unsigned long wanted) {
    while (count < (int)wanted && take((1 + draw(most_mib)) * MIB))
        ;
    while (count)
        give((int)draw((unsigned long)count));
}

int main(int argc, char **argv) {
    if (argc != 5 || strtoul(argv[3], NULL, 10) > MOST_BLOCKS)
        return 2;
    unsigned long rounds = strtoul(argv[1], NULL, 10);
    state = strtoul(argv[4], NULL, 10);
    use_primary(0);
    for (unsigned long i = 0; i < rounds; i++)
        play_round(strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
    printf("%lu %lu %.1f %lu\n", allocations, refused, longest_ms, wrong);
    return wrong != 0;
}
