/*
 * One allocation and one free, again and again beside 1,000 live blocks: through the preloaded
 * library, and through the pool alone as the mode of free uses it. Nanoseconds a pair, each the
 * best of many short slices, ten a round; the two take turns, so that a busy machine disturbs both.
 * One line of JSON.
 *
 *   pair MODE [ROUNDS [pool|clean|preloaded]]
 *
 * MODE names the mode of free to measure the pool for: sync, lazy, ordered; anything else: the pool
 * is left out. With the third argument only that side runs, which is for counting instructions.
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

static enum bfc_reserve_result reserve(void *context, uint64_t bytes, bfc_addr *start) {
    uint64_t *next = context;
    *start = *next;
    *next += bytes;
    return BFC_RESERVED;
}

static void release(void *context, bfc_addr start, uint64_t bytes) {
    (void)context, (void)start, (void)bytes;
}

static struct bfc_pool *open_pool(bool reuse_dirty) {
    static uint64_t next = UINT64_C(1) << 40;
    struct bfc_pool_config config;
    struct bfc_source source = {.context = &next, .reserve = reserve, .release = release};
    struct bfc_pool *pool;
    struct bfc_block_info block;
    bfc_pool_config_default(&config);
    config.reuse_dirty = reuse_dirty;
    if (bfc_pool_create(&pool, &config, &source) != BFC_OK)
        exit(1);
    for (int i = 0; i < LIVE; i++)
        bfc_pool_allocate(pool, BYTES, 0, &block);
    return pool;
}

/* Of blocks that are clean when they are freed. */
static double time_clean(struct bfc_pool *pool) {
    struct bfc_block_info block;
    double start = now_ns();
    for (int i = 0; i < PAIRS; i++) {
        bfc_pool_allocate(pool, BYTES, 0, &block);
        bfc_pool_free(pool, block.start, BFC_NO_MARK);
    }
    return (now_ns() - start) / PAIRS;
}

/* Of blocks that are freed under marks, which are found complete every so often. */
static double time_marked(struct bfc_pool *pool, unsigned flags) {
    static bfc_mark mark;
    struct bfc_block_info block;
    double start = now_ns();
    for (int i = 0; i < PAIRS; i++) {
        bfc_pool_allocate(pool, BYTES, flags, &block);
        if (++mark % LOOK_EVERY == 0)
            bfc_pool_complete(pool, mark);
        bfc_pool_free(pool, block.start, mark);
    }
    return (now_ns() - start) / PAIRS;
}

/* ---- both ---- */

static void keep_best(double *best, double time) {
    if (*best == 0 || time < *best)
        *best = time;
}

int main(int count, char **arguments) {
    const char *mode = count > 1 ? arguments[1] : "", *only = count > 3 ? arguments[3] : NULL;
    int rounds = count > 2 ? atoi(arguments[2]) : 101;
    bool ordered = !strncmp(mode, "ordered", 7), marks = ordered || !strncmp(mode, "lazy", 4);
    bool pooled = marks || !strncmp(mode, "sync", 4);
    double clean = 0, own = 0, preloaded = 0;
    static uint64_t live[LIVE];
    struct bfc_pool *unmarked = open_pool(ordered), *pool = open_pool(ordered);
    for (int i = 0; i < LIVE && (!only || !strcmp(only, "preloaded")); i++)
        cuMemAlloc_v2(&live[i], BYTES);
    for (int i = 0; i < rounds * SLICES; i++) {
        if (pooled && (!only || !strcmp(only, "clean")))
            keep_best(&clean, time_clean(unmarked));
        if (marks && (!only || !strcmp(only, "pool")))
            keep_best(&own, time_marked(pool, ordered ? BFC_ALLOCATE_DIRTY : 0));
        if (!only || !strcmp(only, "preloaded"))
            keep_best(&preloaded, time_calls());
    }
    own = marks ? own : clean;
    printf("{\"mode\": \"%s\", \"ns_per_pair\": %.1f", mode, preloaded);
    if (pooled)
        printf(", \"pool_ns\": %.1f, \"over_pool_ns\": %.1f, \"clean_pool_ns\": %.1f, "
               "\"over_clean_pool_ns\": %.1f",
               own, preloaded - own, clean, preloaded - clean);
    puts("}");
    return 0;
}
