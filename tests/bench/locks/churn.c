/*
 * Churn by several threads on one pool, for a while: what one lock in the pool is worth.
 *
 *   pool-lock-NAME THREADS MILLISECONDS [own]     own: a pool for each thread, so no lock is
 *                                                 contended: what waits remain are the machine's
 *
 * Prints: ns a pair over all threads, of the wall's time; of the processors'; pairs of the thread
 * with the fewest, as a part of the one with the most; and of single pairs, in microseconds, the
 * time that one in 10,000 exceeds, and the longest. Compiled once for each lock of this folder.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pool/pool.h"
#include "tests/bench/workload.h"

#define MOST_THREADS 64
#define LIVE 8192
#define BUCKETS 1024 /* 16 an octave of ticks */
#define HEAP (UINT64_C(64) << 30)

struct worker {
    pthread_t thread;
    struct bfc_pool *pool;
    uint64_t seed, pairs, longest;
    uint32_t live;
    bfc_addr at[LIVE];
    uint64_t took[BUCKETS];
};

static pthread_barrier_t gate;
static int stop;

static uint64_t time_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The cheapest clock there is, in its own ticks. */
static uint64_t ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return time_of(CLOCK_MONOTONIC);
#endif
}

static enum bfc_reserve_result reserve(void *context, uint64_t bytes, bfc_addr *start,
                                       struct bfc_ask *ask) {
    (void)ask;
    (void)context, (void)bytes;
    *start = UINT64_C(1) << 40;
    return BFC_RESERVED;
}

static bool release(void *context, bfc_addr start, uint64_t bytes, int *error) {
    (void)error;
    (void)context, (void)start, (void)bytes;
    return true;
}

static struct bfc_pool *open_pool(void) {
    struct bfc_pool_config config;
    struct bfc_upstream upstream = {.reserve = reserve, .release = release};
    struct bfc_pool *pool;
    bfc_pool_config_default(&config);
    config.growth = BFC_GROWTH_PREALLOCATE;
    config.preallocate = config.limit = HEAP;
    if (bfc_pool_create(&pool, &config, &upstream) != BFC_OK)
        abort();
    return pool;
}

static bfc_addr allocate(struct bfc_pool *pool) {
    struct bfc_block_info block;
    if (bfc_pool_allocate(pool, 4096, 0, &block) != BFC_OK)
        abort();
    return block.start;
}

static unsigned bucket_of(uint64_t time) {
    if (time < 16)
        return (unsigned)time;
    unsigned octave = 63u - (unsigned)__builtin_clzll(time);
    unsigned bucket = (octave - 3) * 16 + (unsigned)(time >> (octave - 4) & 15);
    return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

static double end_of(unsigned bucket) {
    return bucket < 16 ? bucket : (double)((uint64_t)(bucket % 16 + 17) << (bucket / 16 - 1));
}

static void *work(void *context) {
    struct worker *w = context;
    pthread_barrier_wait(&gate);
    uint64_t began = ticks();
    /* Relaxed: it only has to be seen some time. */
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        uint64_t slot = next_random(&w->seed) % w->live;
        bfc_pool_free(w->pool, w->at[slot], BFC_NO_FENCE);
        w->at[slot] = allocate(w->pool);
        w->pairs++;
        uint64_t now = ticks(), took = now - began;
        w->took[bucket_of(took)]++;
        w->longest = took > w->longest ? took : w->longest;
        began = now;
    }
    return NULL;
}

static void report(const struct worker *workers, unsigned threads, uint64_t wall, uint64_t cpu,
                   double us_a_tick) {
    uint64_t pairs = 0, fewest = UINT64_MAX, most = 0, longest = 0, above = 0;
    unsigned bucket = BUCKETS;
    for (unsigned i = 0; i < threads; i++) {
        const struct worker *w = &workers[i];
        pairs += w->pairs;
        fewest = w->pairs < fewest ? w->pairs : fewest;
        most = w->pairs > most ? w->pairs : most;
        longest = w->longest > longest ? w->longest : longest;
    }
    while (bucket && above <= pairs / 10000) {
        bucket--;
        for (unsigned i = 0; i < threads; i++)
            above += workers[i].took[bucket];
    }
    printf("%.1f %.1f %.3f %.1f %.0f\n", (double)wall / (double)pairs, (double)cpu / (double)pairs,
           (double)fewest / (double)most, end_of(bucket) * us_a_tick, (double)longest * us_a_tick);
}

int main(int argc, char **argv) {
    static struct worker workers[MOST_THREADS];
    unsigned threads = argc > 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    uint64_t ms = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    bool own = argc > 3 && !strcmp(argv[3], "own");
    if (!threads || threads > MOST_THREADS || !ms || argc > 3 + own) {
        fprintf(stderr, "usage: %s THREADS MILLISECONDS [own]; THREADS: 1 to %d\n", argv[0],
                MOST_THREADS);
        return 2;
    }
    struct bfc_pool *shared = open_pool();
    pthread_barrier_init(&gate, NULL, threads + 1);
    for (unsigned i = 0; i < threads; i++) {
        workers[i].pool = own ? open_pool() : shared;
        workers[i].seed = i + 1;
        workers[i].live = LIVE / threads;
        for (uint32_t b = 0; b < workers[i].live; b++)
            workers[i].at[b] = allocate(workers[i].pool);
    }
    for (unsigned i = 0; i < threads; i++)
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    pthread_barrier_wait(&gate);
    uint64_t wall = time_of(CLOCK_MONOTONIC), cpu = time_of(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t tick = ticks();
    nanosleep(
        &(struct timespec){.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000},
        NULL);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
    tick = ticks() - tick;
    wall = time_of(CLOCK_MONOTONIC) - wall;
    cpu = time_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    report(workers, threads, wall, cpu, (double)wall / 1000 / (double)tick);
}
