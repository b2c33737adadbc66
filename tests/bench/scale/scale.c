/*
 * What a pair of allocate and free costs, and what a live block takes of the host's memory, by the
 * number of live blocks, threads and regions: for the pool, and for models of others (models.h).
 *
 * A thread frees one of its blocks, at random, and allocates another, of 512 bytes to 64 KiB,
 * evenly by the logarithm of the size. Each row is measured in a process of its own. Counted is the
 * time of all processors, so that what else runs on the machine hardly matters; the least of some
 * turns.
 *
 * usage: scale [MOST_LIVE [PAIRS_A_TURN]]       prints JSON: a list of rows
 */
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pool/pool.h"
#include "tests/bench/scale/models.h"
#include "tests/bench/workload.h"

enum { LEAST = 512, MOST = 65536, MEAN = 13402, TURNS = 5, THREADS_MOST = 8 };

static struct row {
    const char *who;
    uint32_t live;
    unsigned threads, regions;
} row;

static uint64_t pairs_a_turn = 200000;
static struct bfc_pool *pool;
static struct model *model;
static uint64_t *blocks;
static pthread_barrier_t barrier;

/* ---- the allocators ---- */

static enum bfc_reserve_result reserve(void *context, uint64_t bytes, bfc_addr *start,
                                       struct bfc_ask *ask) {
    (void)ask;
    uint64_t *next = context;
    *start = *next;
    *next += bytes + MOST;
    return BFC_RESERVED;
}

static bool release(void *context, bfc_addr start, uint64_t bytes, int *error) {
    (void)context, (void)start, (void)bytes, (void)error;
    return true;
}

/* One region has room for all; of several, each has its part of what is live, so that all are used.
 */
static void open_pool(uint64_t bytes) {
    static uint64_t next = UINT64_C(1) << 40;
    struct bfc_upstream upstream = {.context = &next, .reserve = reserve, .release = release};
    struct bfc_pool_config config;
    bfc_pool_config_default(&config);
    config.growth = row.regions == 1 ? BFC_GROWTH_PREALLOCATE : BFC_GROWTH_FIXED;
    config.preallocate = bytes;
    config.growth_size = bytes / 2 / row.regions / BFC_GRANULE * BFC_GRANULE;
    if (bfc_pool_create(&pool, &config, &upstream) != BFC_OK)
        exit(1);
}

static uint64_t allocate(uint64_t bytes) {
    struct bfc_block_info block;
    if (model)
        return model_allocate(model, bytes);
    return bfc_pool_allocate(pool, bytes, 0, &block) == BFC_OK ? block.start : 0;
}

static void release_block(uint64_t start) {
    if (model)
        model_free(model, start);
    else
        bfc_pool_free(pool, start, BFC_NO_FENCE);
}

/* ---- one row ---- */

static uint64_t draw_size(uint64_t *random) {
    double part = (double)(next_random(random) >> 11) / (double)(UINT64_C(1) << 53);
    return (uint64_t)(LEAST * pow((double)MOST / LEAST, part));
}

static void replace(uint64_t *random, uint64_t first, uint64_t count) {
    uint64_t *block = &blocks[first + next_random(random) % count];
    if (*block)
        release_block(*block);
    *block = allocate(draw_size(random));
    if (!*block) {
        fprintf(stderr, "scale: %s has no memory for %u blocks\n", row.who, row.live);
        exit(1);
    }
}

/* Sizes are drawn beforehand for the timed part: pow takes longer than the pool does. */
static void *churn(void *number) {
    uint64_t each = row.live / row.threads, first = (uint64_t)(uintptr_t)number * each;
    uint64_t random = 1 + (uintptr_t)number, pairs = pairs_a_turn / row.threads;
    for (uint64_t i = 0; i < each; i++)
        blocks[first + i] = allocate(draw_size(&random));
    for (uint64_t i = 0; i < each && i < 5 * pairs_a_turn / row.threads; i++)
        replace(&random, first, each);
    struct {
        uint32_t slot, bytes;
    } *plan = malloc(pairs * sizeof *plan);
    if (!plan)
        exit(1);
    for (int turn = 0; turn < TURNS; turn++) {
        for (uint64_t i = 0; i < pairs; i++) {
            plan[i].slot = (uint32_t)(next_random(&random) % each);
            plan[i].bytes = (uint32_t)draw_size(&random);
        }
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        for (uint64_t i = 0; i < pairs; i++) {
            uint64_t *block = &blocks[first + plan[i].slot];
            release_block(*block);
            if (!(*block = allocate(plan[i].bytes)))
                exit(1);
        }
        pthread_barrier_wait(&barrier);
    }
    free(plan);
    return NULL;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Bytes of memory that the process has. */
static uint64_t resident(void) {
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*u %llu", &pages) != 1)
        exit(1);
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void measure_row(void) {
    pthread_t threads[THREADS_MOST];
    uint64_t bytes = 2 * (uint64_t)MEAN * row.live / BFC_GRANULE * BFC_GRANULE + (4 << 20);
    blocks = calloc(row.live, sizeof *blocks);
    if (!blocks || pthread_barrier_init(&barrier, NULL, row.threads + 1))
        exit(1);
    memset(blocks, 1, row.live * sizeof *blocks);
    memset(blocks, 0, row.live * sizeof *blocks);
    uint64_t before = resident();
    if (strcmp(row.who, "pool") == 0)
        open_pool(bytes);
    else
        model = model_new(strcmp(row.who, "tf") == 0 ? RULE_TF : RULE_PYTORCH, bytes, row.regions);
    for (unsigned i = 0; i < row.threads; i++)
        if (pthread_create(&threads[i], NULL, churn, (void *)(uintptr_t)i))
            exit(1);
    double least = 0;
    uint64_t host = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        pthread_barrier_wait(&barrier);
        host = host ? host : resident() - before;
        double start = now();
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        double ns = (now() - start) / (double)pairs_a_turn;
        least = turn == 0 || ns < least ? ns : least;
    }
    for (unsigned i = 0; i < row.threads; i++)
        pthread_join(threads[i], NULL);
    printf("{\"allocator\": \"%s\", \"live\": %u, \"threads\": %u, \"regions\": %u, \"ns\": %.1f, "
           "\"host_bytes\": %.0f}",
           row.who, row.live, row.threads, row.regions, least, (double)host / row.live);
    fflush(stdout);
}

static bool measure_apart(const char *who, uint32_t live, unsigned threads, unsigned regions) {
    static bool comma;
    int status;
    printf("%s", comma ? ",\n  " : "[\n  ");
    comma = true;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        row = (struct row){who, live, threads, regions};
        measure_row();
        _exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(int argc, char **argv) {
    static const char *const all[] = {"pool", "tf", "pytorch"};
    static const uint32_t lives[] = {1000, 100000, 10000000};
    static const unsigned threads[] = {1, 2, THREADS_MOST}, regions[] = {8, 64};
    uint32_t most = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 10000000;
    bool done = true;
    if (argc > 2)
        pairs_a_turn = strtoull(argv[2], NULL, 10);
    for (int who = 0; who < 3; who++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3 && lives[i] <= most; j++)
                done &= measure_apart(all[who], lives[i], threads[j], 1);
    for (int who = 0; who < 3; who++)
        for (int i = 0; i < 2; i++)
            done &= measure_apart(all[who], 100000 <= most ? 100000 : 1000, 1, regions[i]);
    puts("\n]");
    return !done;
}
