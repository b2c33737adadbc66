/*
 * How much one call can cost: steps (basic blocks of the pool's code) of each single call, which do
 * not depend on how busy the machine is. The pool is compiled with -fsanitize-coverage=trace-pc, so
 * that each step comes by here.
 *
 * Calls that asked the upstream are told apart: "max_asking". One line of JSON a workload: the
 * five; the first three with pages, where those that ask are not told apart; `grow`, 10^6 blocks
 * from nothing (records, the map and the regions grow); `fall`, all of them freed in random order
 * (and shrink); `fences`, frees under fences that complete 10,000 at a time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "pool/pool.h"
#include "tests/bench/null_pages.h"
#include "tests/bench/workload.h"

#define HEAP (UINT64_C(64) << 30)
#define MANY 1000000
#define LONG_CALL 2000 /* steps: some microseconds */

void __sanitizer_cov_trace_pc(void);

enum backing { FIXED, GROWN, PAGED };

static uint64_t steps;
static bool asked;

void __sanitizer_cov_trace_pc(void) {
    steps++;
}

struct count {
    uint64_t calls, steps, most, most_asking, long_calls;
    const char *which;
};

static enum bfc_reserve_result reserve(void *context, uint64_t bytes, bfc_addr *start,
                                       struct bfc_ask *ask) {
    (void)ask;
    bfc_addr *next = context;
    asked = true;
    *start = *next;
    *next += bytes + (UINT64_C(2) << 20);
    return BFC_RESERVED;
}

static bool release(void *context, bfc_addr start, uint64_t bytes, int *error) {
    (void)error;
    (void)context, (void)start, (void)bytes;
    return asked = true;
}

static void begin(void) {
    steps = 0;
    asked = false;
}

static void end(struct count *count, const char *which) {
    uint64_t took = steps;
    count->calls++;
    count->steps += took;
    if (asked) {
        count->most_asking = took > count->most_asking ? took : count->most_asking;
        return;
    }
    count->long_calls += took > LONG_CALL;
    if (took > count->most) {
        count->most = took;
        count->which = which;
    }
}

static bfc_addr allocate(struct bfc_pool *pool, uint64_t bytes, struct count *count) {
    struct bfc_block_info block;
    begin();
    if (bfc_pool_allocate(pool, bytes, 0, &block) != BFC_OK)
        block.start = 0;
    end(count, "allocate");
    return block.start;
}

static void give_back(struct bfc_pool *pool, bfc_addr start, bfc_fence fence, struct count *count) {
    begin();
    bfc_pool_free(pool, start, fence);
    end(count, "free");
}

static void show(const char *name, enum backing backing, const struct count *count) {
    printf("{\"workload\":\"%s%s\",\"calls\":%" PRIu64 ",\"mean_steps\":%.1f,\"max_steps\":%" PRIu64
           ",\"in\":\"%s\",\"over_%d\":%" PRIu64 ",\"max_asking\":%" PRIu64 "}\n",
           name, backing == PAGED ? ", pages" : "", count->calls,
           (double)count->steps / (double)count->calls, count->most, count->which, LONG_CALL,
           count->long_calls, count->most_asking);
}

static struct bfc_pool *open_pool(bfc_addr *next, enum backing backing) {
    struct bfc_pool_config config;
    struct bfc_upstream upstream = {.context = next,
                                    .reserve = reserve,
                                    .release = release,
                                    .pages = backing == PAGED ? &null_pages : NULL};
    struct bfc_pool *pool;
    *next = UINT64_C(1) << 40;
    bfc_pool_config_default(&config);
    if (backing == FIXED) {
        config.growth = BFC_GROWTH_PREALLOCATE;
        config.preallocate = config.limit = HEAP;
    }
    if (bfc_pool_create(&pool, &config, &upstream) != BFC_OK)
        abort();
    return pool;
}

static void run_workload(const char *name, unsigned scale, enum backing backing) {
    struct workload w;
    bfc_addr next;
    struct count count = {.which = ""};
    if (!workload_make(&w, name, 1, scale))
        abort();
    struct bfc_pool *pool = open_pool(&next, backing);
    bfc_addr *at = calloc(w.slots, sizeof *at);
    for (size_t i = 0; i < w.count; i++) {
        const struct op *op = &w.ops[i];
        if (op->bytes)
            at[op->slot] = allocate(pool, op->bytes, &count);
        else
            give_back(pool, at[op->slot], BFC_NO_FENCE, &count);
    }
    show(name, backing, &count);
    bfc_pool_destroy(pool, true);
    free(at);
    workload_drop(&w);
}

static void rise_and_fall(void) {
    bfc_addr next, *at = calloc(MANY, sizeof *at);
    uint64_t seed = 1;
    struct bfc_pool *pool = open_pool(&next, GROWN);
    struct count rise = {.which = ""}, fall = rise;
    for (unsigned i = 0; i < MANY; i++)
        at[i] = allocate(pool, UINT64_C(512) << next_random(&seed) % 8, &rise);
    show("grow", GROWN, &rise);
    for (unsigned i = MANY; i-- > 0;) {
        unsigned j = (unsigned)(next_random(&seed) % (i + 1));
        bfc_addr gone = at[j];
        at[j] = at[i];
        give_back(pool, gone, BFC_NO_FENCE, &fall);
    }
    show("fall", GROWN, &fall);
    bfc_pool_destroy(pool, true);
    free(at);
}

static void complete_many(void) {
    enum { LIVE = 100000, AT_ONCE = 10000 };
    bfc_addr next, *at = calloc(LIVE, sizeof *at);
    uint64_t seed = 1, fence = 0;
    struct bfc_pool *pool = open_pool(&next, GROWN);
    struct count count = {.which = ""};
    for (unsigned i = 0; i < LIVE; i++)
        at[i] = allocate(pool, UINT64_C(512) << next_random(&seed) % 8, &count);
    for (unsigned i = 0; i < 5 * LIVE; i++) {
        unsigned j = (unsigned)(next_random(&seed) % LIVE);
        give_back(pool, at[j], ++fence, &count);
        if (i % AT_ONCE == 0) {
            begin();
            bfc_pool_complete(pool, fence - 1);
            end(&count, "complete");
        }
        at[j] = allocate(pool, UINT64_C(512) << next_random(&seed) % 8, &count);
    }
    show("fences", GROWN, &count);
    bfc_pool_destroy(pool, true);
    free(at);
}

int main(int argc, char **argv) {
    static const char *const names[] = {"random", "train", "traindyn", "churn", "pingpong"};
    enum { WITH_PAGES = 3 };
    unsigned scale = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
    if (argc > 2 || !scale) {
        fputs("usage: pool-steps [SCALE]     SCALE divides the five workloads' lengths\n", stderr);
        return 2;
    }
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        run_workload(names[i], scale, FIXED);
    for (unsigned i = 0; i < WITH_PAGES; i++)
        run_workload(names[i], scale, PAGED);
    rise_and_fall();
    complete_many();
}
