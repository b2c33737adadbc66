/*
 * Policies `tf` and `pytorch` against plain models of their rules: random programs, the same
 * address or failure at each step, the same bytes reserved and in use, and the invariants.
 * BFC_TEST_PROGRAMS says how many programs to run.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/pool/fake_upstream.h"
#include "tests/unit/pool/plain_models.h"

#define MIB (UINT64_C(1) << 20)
#define STEPS 600
#define LIVE 200

struct run {
    enum bfc_policy policy;
    struct fake_upstream fake;
    struct bfc_pool *pool;
    struct plain plain;
    uint64_t live[LIVE];
    unsigned count;
    uint64_t seed;
};

static uint64_t draw(struct run *r, uint64_t below) {
    r->seed = r->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (r->seed >> 33) % below;
}

static uint64_t draw_size(struct run *r) {
    uint64_t most = UINT64_C(1) << draw(r, 29);
    return 1 + draw(r, most);
}

static void configure(struct run *r, struct bfc_pool_config *config) {
    static const uint64_t limits[] = {UINT64_MAX, 700 * MIB, 1000 * MIB + 77, 96 * MIB};
    bfc_pool_config_default(config);
    config->keep_whole = UINT64_MAX;
    config->policy = r->policy;
    config->limit = limits[draw(r, 4)];
    if (r->policy == BFC_POLICY_PYTORCH && draw(r, 2))
        config->max_split = (20 + draw(r, 60)) * MIB;
    if (r->policy == BFC_POLICY_PYTORCH && draw(r, 2))
        config->gc_threshold = draw(r, 600) * MIB;
}

static void open_run(struct run *r, uint64_t seed) {
    struct bfc_pool_config config;
    uint64_t capacity;
    r->seed = seed;
    r->count = 0;
    r->policy = seed & 1 ? BFC_POLICY_TF : BFC_POLICY_PYTORCH;
    capacity = (64 + draw(r, 1500)) * MIB + draw(r, 4000) * 512;
    fake_upstream_init(&r->fake, capacity);
    r->fake.gap = draw(r, 2) * MIB;
    configure(r, &config);
    plain_open(&r->plain, capacity, r->fake.gap, config.limit);
    r->plain.max_split = config.max_split;
    r->plain.threshold = config.gc_threshold;
    struct bfc_upstream upstream = fake_upstream_table(&r->fake);
    if (bfc_pool_create(&r->pool, &config, &upstream) != BFC_OK)
        abort();
}

static bool allocate_both(struct run *r, uint64_t bytes) {
    struct bfc_block_info block;
    enum bfc_status status = bfc_pool_allocate(r->pool, bytes, 0, &block);
    uint64_t expected = r->policy == BFC_POLICY_TF ? plain_tf_allocate(&r->plain, bytes)
                                                   : plain_pytorch_allocate(&r->plain, bytes);
    uint64_t got = status == BFC_OK ? block.start : PLAIN_NONE;
    if (got != PLAIN_NONE)
        r->live[r->count++] = got;
    if (got == expected)
        return true;
    printf("# %" PRIu64 " bytes: at %#" PRIx64 ", by the rules at %#" PRIx64 "\n", bytes, got,
           expected);
    return false;
}

static bool free_both(struct run *r, unsigned which) {
    uint64_t start = r->live[which];
    r->live[which] = r->live[--r->count];
    plain_free(&r->plain, start);
    return bfc_pool_free(r->pool, start, BFC_NO_FENCE) == BFC_OK;
}

static bool same_totals(struct run *r) {
    struct bfc_pool_stats stats;
    bfc_pool_read_stats(r->pool, &stats);
    const char *fault = bfc_pool_check(r->pool);
    if (fault)
        printf("# %s\n", fault);
    return !fault && stats.reserved == r->plain.taken && stats.in_use == r->plain.in_use;
}

static bool step(struct run *r) {
    if (r->count == LIVE || (r->count && draw(r, 100) < 45))
        return free_both(r, (unsigned)draw(r, r->count));
    if (draw(r, 200) == 0)
        while (r->count)
            if (!free_both(r, (unsigned)draw(r, r->count)))
                return false;
    return allocate_both(r, draw_size(r));
}

static bool run_program(uint64_t seed) {
    static struct run r;
    open_run(&r, seed);
    int i = 0;
    while (i < STEPS && step(&r) && same_totals(&r))
        i++;
    bfc_pool_destroy(r.pool, true);
    if (i < STEPS)
        printf("not ok 1 - seed %" PRIu64 ", step %d: %s differs from its rules\n", seed, i,
               r.policy == BFC_POLICY_TF ? "tf" : "pytorch");
    return i == STEPS;
}

int main(int argc, char **argv) {
    const char *setting = getenv("BFC_TEST_PROGRAMS");
    uint64_t programs = setting ? strtoull(setting, NULL, 10) : 400;
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    puts("1..1");
    for (uint64_t seed = first; seed < first + programs; seed++)
        if (!run_program(seed))
            return 1;
    puts("ok 1 - tf and pytorch do as their rules say");
    return 0;
}
