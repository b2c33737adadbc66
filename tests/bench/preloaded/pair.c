/*
 * One allocation and one free, again and again beside 1,000 live blocks: through the preloaded
 * library, and through the pool alone as the mode of free uses it. Nanoseconds a pair, each the
 * best of many short slices, ten a round; the two take turns, so that a busy machine disturbs both.
 * One line of JSON.
 *
 *   pair MODE [ROUNDS [all|pool|ready|preloaded [cut|same]]]
 *
 * MODE names the mode of free to measure the pool for: sync, lazy, ordered; anything else: the pool
 * is left out. With the third argument only that side runs, which is for counting instructions. The
 * pair's block is cut from a larger one and merged into it again, or with `same` it is a free block
 * of the same size between live ones, as in a program's later periods.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pool/pool.h"

int cuMemAlloc_v2(uint64_t *pointer, size_t bytes);
int cuMemFree_v2(uint64_t pointer);

enum { PAIRS = 10000, SLICES = 10, LIVE = 1000, BYTES = 65536, LOOK_EVERY = 32 };

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* ---- preloaded, or over the driver itself ---- */

static double time_calls(void) {
    uint64_t pointer;
    double start = now_ns();
    for (int i = 0; i < PAIRS; i++) {
        cuMemAlloc_v2(&pointer, BYTES);
        cuMemFree_v2(pointer);
    }
    return (now_ns() - start) / PAIRS;
}

/* ---- the pool alone ---- */

static enum bfc_reserve_result reserve(void *context, uint64_t bytes, bfc_addr *start,
                                       struct bfc_ask *ask) {
    (void)ask;
    uint64_t *next = context;
    *start = *next;
    *next += bytes;
    return BFC_RESERVED;
}

static bool release(void *context, bfc_addr start, uint64_t bytes, int *error) {
    (void)error;
    (void)context, (void)start, (void)bytes;
    return true;
}

static struct bfc_pool *open_pool(bool reuse_pending, bool same) {
    static uint64_t next = UINT64_C(1) << 40;
    struct bfc_pool_config config;
    struct bfc_upstream upstream = {.context = &next, .reserve = reserve, .release = release};
    struct bfc_pool *pool;
    struct bfc_block_info block;
    bfc_pool_config_default(&config);
    config.reuse_pending = reuse_pending;
    if (bfc_pool_create(&pool, &config, &upstream) != BFC_OK)
        exit(1);
    for (int i = 0; i < LIVE; i++)
        bfc_pool_allocate(pool, BYTES, 0, &block);
    if (same)
        bfc_pool_free(pool, block.start - (uint64_t)LIVE / 2 * BYTES, BFC_NO_FENCE);
    return pool;
}

/* Of blocks that are ready when they are freed. */
static double time_ready(struct bfc_pool *pool) {
    struct bfc_block_info block;
    double start = now_ns();
    for (int i = 0; i < PAIRS; i++) {
        bfc_pool_allocate(pool, BYTES, 0, &block);
        bfc_pool_free(pool, block.start, BFC_NO_FENCE);
    }
    return (now_ns() - start) / PAIRS;
}

/* Of blocks that are freed under fences, which are found complete every so often. */
static double time_fenced(struct bfc_pool *pool, unsigned flags) {
    static bfc_fence fence;
    struct bfc_block_info block;
    double start = now_ns();
    for (int i = 0; i < PAIRS; i++) {
        bfc_pool_allocate(pool, BYTES, flags, &block);
        if (++fence % LOOK_EVERY == 0)
            bfc_pool_complete(pool, fence);
        bfc_pool_free(pool, block.start, fence);
    }
    return (now_ns() - start) / PAIRS;
}

/* ---- both ---- */

static void keep_best(double *best, double time) {
    if (*best == 0 || time < *best)
        *best = time;
}

int main(int count, char **arguments) {
    const char *mode = count > 1 ? arguments[1] : "",
               *only = count > 3 && strcmp(arguments[3], "all") ? arguments[3] : NULL;
    int rounds = count > 2 ? atoi(arguments[2]) : 101;
    bool ordered = !strncmp(mode, "ordered", 7), fences = ordered || !strncmp(mode, "lazy", 4);
    bool same = count > 4 && !strcmp(arguments[4], "same");
    bool pooled = fences || !strncmp(mode, "sync", 4);
    double ready = 0, own = 0, preloaded = 0;
    static uint64_t live[LIVE];
    struct bfc_pool *unfenced = open_pool(ordered, same), *pool = open_pool(ordered, same);
    for (int i = 0; i < LIVE && (!only || !strcmp(only, "preloaded")); i++)
        cuMemAlloc_v2(&live[i], BYTES);
    if (same && live[LIVE / 2])
        cuMemFree_v2(live[LIVE / 2]);
    for (int i = 0; i < rounds * SLICES; i++) {
        if (pooled && (!only || !strcmp(only, "ready")))
            keep_best(&ready, time_ready(unfenced));
        if (fences && (!only || !strcmp(only, "pool")))
            keep_best(&own, time_fenced(pool, ordered ? BFC_ALLOCATE_PENDING : 0));
        if (!only || !strcmp(only, "preloaded"))
            keep_best(&preloaded, time_calls());
    }
    own = fences ? own : ready;
    printf("{\"mode\": \"%s\", \"ns_per_pair\": %.1f", mode, preloaded);
    if (pooled)
        printf(", \"pool_ns\": %.1f, \"over_pool_ns\": %.1f, \"ready_pool_ns\": %.1f, "
               "\"over_ready_pool_ns\": %.1f",
               own, preloaded - own, ready, preloaded - ready);
    puts("}");
    return 0;
}
