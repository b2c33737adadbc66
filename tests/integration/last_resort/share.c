/*
 * One of several processes that share a device which is too small for all of them: in each round it
 * takes blocks, fills them, looks whether they still hold what was put there, and frees them. When
 * there is no memory it frees what it has and goes on.
 *
 *   share ROUNDS [LEAST-]MOST BLOCKS SEED [BOARD]
 *
 * Each round takes BLOCKS blocks of LEAST (1) to MOST MiB each. Prints how many allocations there
 * were, how many of them were refused, how long the longest one took, in milliseconds, and how many
 * blocks did not hold what they should. With a BOARD (board.h) that all processes have in common
 * also the most that one allocation starved, and all together, in milliseconds; and how often they
 * were overtaken in all, and the one that was most.
 */
#include <string.h>
#include <time.h>

#include "tests/integration/interpose/program.h"
#include "tests/integration/last_resort/board.h"

enum { MOST_BLOCKS = 64, MIB = 1 << 20, SAMPLE = 4096 };

struct block {
    CUdeviceptr start;
    size_t bytes;
    unsigned char content;
};

static struct block blocks[MOST_BLOCKS];
static int count;
static unsigned long allocations, refused, wrong;
static double longest_ms, starved_ms, starved_in_all_ms;
static unsigned long overtaken, most_overtaken;
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

static CUresult allocate(CUdeviceptr *start, size_t bytes) {
    board_ask(bytes);
    double began = now_ms();
    CUresult result = cuMemAlloc(start, bytes);
    double took = now_ms() - began;
    struct waited waited = board_got(bytes, result == CUDA_SUCCESS);
    longest_ms = took > longest_ms ? took : longest_ms;
    starved_ms = waited.starved_ms > starved_ms ? waited.starved_ms : starved_ms;
    starved_in_all_ms += waited.starved_ms;
    overtaken += waited.overtaken;
    most_overtaken = waited.overtaken > most_overtaken ? waited.overtaken : most_overtaken;
    return result;
}

static int take(size_t bytes) {
    struct block *block = &blocks[count];
    CUresult result = allocate(&block->start, bytes);
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
    board_freed(blocks[index].bytes);
    blocks[index] = blocks[--count];
}

struct sizes {
    unsigned long least, most; /* MiB */
};

static struct sizes read_sizes(const char *text) {
    char *end;
    struct sizes sizes = {1, strtoul(text, &end, 10)};
    return *end == '-' ? (struct sizes){sizes.most, strtoul(end + 1, NULL, 10)} : sizes;
}

static void play_round(struct sizes sizes, unsigned long wanted) {
    while (count < (int)wanted && take((sizes.least + draw(sizes.most - sizes.least + 1)) * MIB))
        ;
    while (count)
        give((int)draw((unsigned long)count));
}

int main(int argc, char **argv) {
    if (argc < 5 || argc > 6 || strtoul(argv[3], NULL, 10) > MOST_BLOCKS)
        return 2;
    size_t unused, total;
    unsigned long rounds = strtoul(argv[1], NULL, 10);
    state = strtoul(argv[4], NULL, 10);
    use_primary(0);
    CHECK(cuMemGetInfo(&unused, &total));
    board_open(argv[5], total);
    for (unsigned long i = 0; i < rounds; i++)
        play_round(read_sizes(argv[2]), strtoul(argv[3], NULL, 10));
    printf("%lu %lu %.1f %lu", allocations, refused, longest_ms, wrong);
    if (argv[5])
        printf(" %.1f %.1f %lu %lu", starved_ms, starved_in_all_ms, overtaken, most_overtaken);
    puts("");
    return wrong != 0;
}
