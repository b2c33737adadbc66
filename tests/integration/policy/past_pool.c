/*
 * A second library's calls past the pool after large frees: what is natively free must be there.
 *
 *   session: 512 MiB go free, 64 MiB are made, then 2600 MiB of 3 GiB past the pool
 *   kept: 3 GiB of 4 GiB go free, 4 MiB are kept, then 2.8 GiB past the pool
 *   random SEED: rounds of such, with what is kept from round to round; 3 GiB
 *
 * All blocks hold what was written to them as long as they live. Exit status 1: an allocation was
 * refused, or contents changed.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/integration/interpose/program.h"

#define MIB ((size_t)1 << 20)

enum { KEPT_MOST = 4, WORDS = 64, ROUNDS = 12 };

struct block {
    CUdeviceptr start;
    size_t bytes;
    unsigned value;
};

static uint64_t state;

static unsigned draw(unsigned below) {
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)(state >> 33) % below;
}

/* Marks both ends: all of it would take long on a device of host memory. */
static void mark(struct block *b) {
    static unsigned last;
    b->value = ++last;
    CHECK(cuMemsetD32(b->start, b->value, WORDS));
    CHECK(cuMemsetD32(b->start + b->bytes - WORDS * 4, b->value, WORDS));
    CHECK(cuCtxSynchronize());
}

static void check_end(CUdeviceptr at, unsigned value) {
    unsigned words[WORDS];
    CHECK(cuMemcpyDtoH(words, at, sizeof words));
    for (int i = 0; i < WORDS; i++)
        if (words[i] != value) {
            printf("contents changed at 0x%llx\n", (unsigned long long)at);
            exit(1);
        }
}

static void check_marks(const struct block *b) {
    check_end(b->start, b->value);
    check_end(b->start + b->bytes - WORDS * 4, b->value);
}

static struct block make(size_t bytes) {
    struct block b = {.bytes = bytes};
    CHECK(cuMemAlloc(&b.start, bytes));
    mark(&b);
    return b;
}

static void end(const struct block *b) {
    check_marks(b);
    CHECK(cuMemFree(b->start));
}

static void take_past_the_pool(size_t bytes) {
    struct block b = {.bytes = bytes};
    CUresult result = cuMemAllocAsync(&b.start, bytes, NULL);
    if (result != CUDA_SUCCESS) {
        printf("%zu MiB past the pool: %d\n", bytes / MIB, (int)result);
        exit(1);
    }
    mark(&b);
    check_marks(&b);
    CHECK(cuMemFreeAsync(b.start, NULL));
    CHECK(cuCtxSynchronize());
}

static void run_session(void) {
    struct block weights = make(512 * MIB);
    end(&weights);
    struct block value = make(64 * MIB);
    take_past_the_pool(2600 * MIB);
    end(&value);
}

static void run_kept(void) {
    struct block scratch = make(3072 * MIB);
    end(&scratch);
    struct block kept = make(4 * MIB);
    take_past_the_pool(2868 * MIB);
    end(&kept);
}

/* What lies in steps of 32 MiB, whatever is live in them, is lost to others. */
static void run_round(struct block kept[KEPT_MOST], unsigned *count) {
    struct block large[6];
    size_t live = 0;
    unsigned many = 2 + draw(5);
    for (unsigned i = 0; i < many; i++)
        large[i] = make((128 + draw(256)) * MIB + draw(2) * 4096);
    for (unsigned i = 0; i < many; i++)
        end(&large[i]);
    for (unsigned i = draw(3); i > 0 && *count < KEPT_MOST; i--)
        kept[(*count)++] = make((1 + draw(12)) * MIB);
    for (unsigned i = 0; i < *count; i++)
        live += kept[i].bytes;
    take_past_the_pool(3072 * MIB - 128 * MIB - live - KEPT_MOST * 32 * MIB);
    for (unsigned i = 0; i < *count; i++)
        check_marks(&kept[i]);
    if (*count && draw(2))
        end(&kept[--*count]);
}

static void run_random(const char *seed) {
    struct block kept[KEPT_MOST];
    unsigned count = 0;
    state = strtoull(seed, NULL, 0);
    draw(1);
    for (int round = 0; round < ROUNDS; round++)
        run_round(kept, &count);
}

int main(int argc, char **argv) {
    use_primary(0);
    CUmemoryPool pool;
    uint64_t none = 0;
    CHECK(cuDeviceGetDefaultMemPool(&pool, 0));
    CHECK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &none));
    if (argc == 2 && !strcmp(argv[1], "session"))
        run_session();
    else if (argc == 2 && !strcmp(argv[1], "kept"))
        run_kept();
    else if (argc == 3 && !strcmp(argv[1], "random"))
        run_random(argv[2]);
    else
        return 2;
    return 0;
}
