/* Runs one workload through a pool and prints how many pairs that were: for counting instructions.
 * The pool has one region from the beginning, or it grows, by regions or by pages: then the
 * difference between two scales is what the pairs take once it has grown.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool/pool.h"
#include "tests/bench/null_pages.h"
#include "tests/bench/workload.h"

#define HEAP (UINT64_C(64) << 30)

static enum bfc_reserve_result reserve(void *context, uint64_t bytes, bfc_addr *start,
                                       struct bfc_ask *ask) {
    (void)ask;
    uint64_t *next = context;
    *start = *next;
    *next += bytes + (UINT64_C(2) << 20);
    return BFC_RESERVED;
}

static bool release(void *context, bfc_addr start, uint64_t bytes, int *error) {
    (void)error;
    (void)context, (void)start, (void)bytes;
    return true;
}

static void run(struct bfc_pool *pool, const struct workload *w, bfc_addr *at) {
    for (size_t i = 0; i < w->count; i++) {
        const struct op *op = &w->ops[i];
        struct bfc_block_info block;
        if (!op->bytes)
            bfc_pool_free(pool, at[op->slot], BFC_NO_FENCE);
        else if (bfc_pool_allocate(pool, op->bytes, 0, &block) == BFC_OK)
            at[op->slot] = block.start;
    }
}

/* The workload named; or churn@LIVE, 1,000,000 / scale replacements among so many blocks. */
static bool make(struct workload *w, const char *name, unsigned scale) {
    if (strncmp(name, "churn@", 6) != 0)
        return workload_make(w, name, 1, scale);
    uint32_t live = (uint32_t)strtoul(name + 6, NULL, 10);
    workload_churn(w, 1, live, live ? 1000000 / scale : 0);
    return live;
}

int main(int argc, char **argv) {
    struct workload w;
    struct bfc_pool *pool;
    struct bfc_pool_config config;
    uint64_t next = UINT64_C(1) << 40;
    struct bfc_upstream upstream = {.context = &next, .reserve = reserve, .release = release};
    const char *backing = argc > 3 ? argv[3] : "fixed";
    unsigned scale = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 50;
    if (argc < 2 || !scale || !make(&w, argv[1], scale)) {
        fputs("usage: pool-hot WORKLOAD|churn@LIVE [SCALE [fixed|grown|pages]]\n", stderr);
        return 2;
    }
    bfc_pool_config_default(&config);
    if (strcmp(backing, "pages") == 0)
        upstream.pages = &null_pages;
    if (strcmp(backing, "fixed") == 0) {
        config.growth = BFC_GROWTH_PREALLOCATE;
        config.preallocate = config.limit = HEAP;
    }
    bfc_addr *at = calloc(w.slots, sizeof *at);
    if (!at || bfc_pool_create(&pool, &config, &upstream) != BFC_OK)
        return 1;
    run(pool, &w, at);
    printf("%zu\n", w.count / 2);
    bfc_pool_destroy(pool, true);
    free(at);
    workload_drop(&w);
}
