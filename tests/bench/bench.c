/*
 * The pool's benchmark: ns a pair, tail of single calls, packing, threads, scaling, host memory.
 *
 * No device: the upstream hands out made-up addresses. Prints a table, or JSON with --json. Nothing
 * is asserted: a benchmark is not a test.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pool/pages.h"
#include "pool/pool.h"
#include "tests/bench/null_pages.h"
#include "tests/bench/workload.h"

#define GIB (UINT64_C(1) << 30)
#define REPEATS 5
#define MOST_THREADS 16

static bool json;
static unsigned scale = 1;
static const char *only;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Time of this thread alone, so that a busy machine disturbs less. */
static uint64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The cheapest clock there is, in its own ticks. */
static uint64_t ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return now_ns();
#endif
}

static double ns_a_tick(void) {
    uint64_t t0 = ticks(), n0 = now_ns();
    while (now_ns() - n0 < 20000000)
        ;
    return (double)(now_ns() - n0) / (double)(ticks() - t0);
}

/* A device that always has memory, up to a capacity. */
struct device {
    uint64_t next, left;
};

static enum bfc_reserve_result reserve(void *context, uint64_t bytes, bfc_addr *start,
                                       struct bfc_ask *ask) {
    (void)ask;
    struct device *device = context;
    if (bytes > device->left)
        return BFC_REFUSED;
    device->left -= bytes;
    *start = device->next;
    device->next += bytes + (UINT64_C(1) << 21);
    return BFC_RESERVED;
}

static bool release(void *context, bfc_addr start, uint64_t bytes, int *error) {
    (void)error;
    struct device *device = context;
    (void)start;
    device->left += bytes;
    return true;
}

/* The same with addresses and memory apart. */
static struct bfc_pool *open_paged_pool(struct device *device,
                                        const struct bfc_pool_config *config) {
    *device = (struct device){.next = UINT64_C(1) << 40};
    struct bfc_upstream upstream = {.context = &device->next, .pages = &null_pages};
    struct bfc_pool *pool;
    if (bfc_pool_create(&pool, config, &upstream) != BFC_OK)
        abort();
    return pool;
}

static struct bfc_pool *open_pool(struct device *device, const struct bfc_pool_config *config) {
    *device = (struct device){.next = UINT64_C(1) << 40, .left = UINT64_MAX};
    struct bfc_upstream upstream = {.context = device, .reserve = reserve, .release = release};
    struct bfc_pool *pool;
    if (bfc_pool_create(&pool, config, &upstream) != BFC_OK)
        abort();
    return pool;
}

/* One region of `bytes`, taken at the first allocation. */
static struct bfc_pool_config fixed_heap(uint64_t bytes) {
    struct bfc_pool_config config;
    bfc_pool_config_default(&config);
    config.growth = BFC_GROWTH_PREALLOCATE;
    config.preallocate = bytes;
    config.limit = bytes;
    return config;
}

static void run(struct bfc_pool *pool, const struct op *ops, size_t count, bfc_addr *at) {
    for (size_t i = 0; i < count; i++) {
        struct bfc_block_info block;
        if (!ops[i].bytes)
            bfc_pool_free(pool, at[ops[i].slot], BFC_NO_FENCE);
        else if (bfc_pool_allocate(pool, ops[i].bytes, 0, &block) == BFC_OK)
            at[ops[i].slot] = block.start;
        else
            at[ops[i].slot] = 0;
    }
}

static int rising(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, unsigned count) {
    qsort(values, count, sizeof *values, rising);
    return values[count / 2];
}

static struct bfc_pool *open_for_time(struct device *device, bool paged) {
    struct bfc_pool_config config = fixed_heap(64 * GIB);
    if (!paged)
        return open_pool(device, &config);
    bfc_pool_config_default(&config);
    return open_paged_pool(device, &config);
}

static double time_once(const struct workload *w, bool paged) {
    struct device device;
    struct bfc_pool *pool = open_for_time(&device, paged);
    bfc_addr *at = calloc(w->slots, sizeof *at);
    run(pool, w->ops, w->setup, at);
    uint64_t began = cpu_ns();
    run(pool, w->ops + w->setup, w->count - w->setup, at);
    uint64_t took = cpu_ns() - began;
    bfc_pool_destroy(pool, true);
    free(at);
    return (double)took * 2 / (double)(w->count - w->setup);
}

/* The machine's reference, in ns: an uncontended pair of lock and unlock, and one look-up in a hash
 * table. */
static double time_reference(void) {
    enum { SLOTS = 1 << 14, ROUNDS = 2000000 };
    static uint64_t keys[SLOTS], values[SLOTS];
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    uint64_t sum = 0, seed = 1;
    for (unsigned i = 0; i < SLOTS; i++) {
        keys[i] = i;
        values[i] = next_random(&seed);
    }
    uint64_t began = cpu_ns();
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t slot = (i * UINT64_C(0x9e3779b97f4a7c15)) >> 50;
        pthread_mutex_lock(&lock);
        sum += keys[slot] == slot ? values[slot] : 0;
        pthread_mutex_unlock(&lock);
    }
    double took = (double)(cpu_ns() - began);
    if (!sum)
        puts("");
    return took / ROUNDS;
}

/* What a workload's pairs took, and what the reference did, in turn with it: the machine's speed
 * changes under us. */
struct speed {
    double ns, paged_ns, reference_ns;
};

static struct speed time_pairs(const struct workload *w) {
    double ns[REPEATS], paged[REPEATS], reference[REPEATS];
    for (int i = 0; i < REPEATS; i++) {
        reference[i] = time_reference();
        ns[i] = time_once(w, false);
        paged[i] = time_once(w, true);
    }
    return (struct speed){median(ns, REPEATS), median(paged, REPEATS), median(reference, REPEATS)};
}

#define LONG_NS 20000

struct tail {
    double p50, p99, p999, most;
    uint64_t over, control_over; /* that took more than LONG_NS */
};

/* What no allocator can make take long: so many steps of a random number's sequence. */
static uint64_t spin(uint64_t *seed) {
    uint64_t sum = 0;
    for (int i = 0; i < 16; i++)
        sum += next_random(seed);
    return sum;
}

/* Times each call by itself, less what reading the clock takes; and between them a fixed piece of
 * work, the control, which takes long only where the machine took the processor away. */
static struct tail time_calls(const struct workload *w) {
    struct device device;
    struct bfc_pool_config config = fixed_heap(64 * GIB);
    struct bfc_pool *pool = open_pool(&device, &config);
    bfc_addr *at = calloc(w->slots, sizeof *at);
    size_t count = w->count - w->setup;
    double *took = malloc(count * sizeof *took), tick = ns_a_tick();
    uint64_t empty = UINT64_MAX;
    for (int i = 0; i < 1000; i++) {
        uint64_t t = ticks();
        t = ticks() - t;
        empty = t < empty ? t : empty;
    }
    run(pool, w->ops, w->setup, at);
    struct tail tail = {0};
    uint64_t seed = 1;
    volatile uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t t = ticks();
        run(pool, w->ops + w->setup + i, 1, at);
        t = ticks() - t;
        took[i] = (double)(t > empty ? t - empty : 0) * tick;
        tail.over += took[i] > LONG_NS;
        t = ticks();
        sum = sum + spin(&seed);
        t = ticks() - t;
        tail.control_over += (double)t * tick > LONG_NS;
    }
    qsort(took, count, sizeof *took, rising);
    tail.p50 = took[count / 2];
    tail.p99 = took[count / 100 * 99];
    tail.p999 = took[count / 1000 * 999];
    tail.most = took[count - 1];
    bfc_pool_destroy(pool, true);
    free(took);
    free(at);
    return tail;
}

struct packing {
    double fixed, grown;                    /* most reserved / most live */
    double paged;                           /* the same with pages */
    uint64_t failed, regions, calls, moved; /* the last two with pages; bytes */
};

static double pack(const struct workload *w, const struct bfc_pool_config *config, bool by_offset,
                   struct packing *packing) {
    struct device device;
    struct bfc_pool *pool = open_pool(&device, config);
    bfc_addr *at = calloc(w->slots, sizeof *at), highest = 0;
    for (size_t i = 0; i < w->count; i++) {
        const struct op *op = &w->ops[i];
        run(pool, op, 1, at);
        bfc_addr end = at[op->slot] + (op->bytes + 511) / 512 * 512;
        highest = op->bytes && end > highest ? end : highest;
    }
    struct bfc_pool_stats stats;
    bfc_pool_read_stats(pool, &stats);
    packing->failed += stats.out_of_memory;
    packing->regions = stats.regions;
    bfc_pool_destroy(pool, true);
    free(at);
    uint64_t reserved = by_offset ? highest - (UINT64_C(1) << 40) : stats.peak_reserved;
    return (double)reserved / (double)w->peak_live;
}

static void pack_pages(const struct workload *w, struct packing *packing) {
    struct device device;
    struct bfc_pool_config config;
    bfc_pool_config_default(&config);
    struct bfc_pool *pool = open_paged_pool(&device, &config);
    bfc_addr *at = calloc(w->slots, sizeof *at);
    run(pool, w->ops, w->count, at);
    struct bfc_pool_stats stats;
    struct bfc_page_stats pages;
    bfc_pool_read_stats(pool, &stats);
    bfc_pool_page_stats(pool, &pages);
    packing->paged = (double)stats.peak_reserved / (double)w->peak_live;
    packing->calls = pages.calls;
    packing->moved = pages.moved;
    packing->failed += stats.out_of_memory;
    bfc_pool_destroy(pool, true);
    free(at);
}

static struct packing time_packing(const struct workload *w) {
    struct packing packing = {0};
    struct bfc_pool_config fixed = fixed_heap(64 * GIB), grown;
    bfc_pool_config_default(&grown);
    packing.fixed = pack(w, &fixed, true, &packing);
    packing.grown = pack(w, &grown, false, &packing);
    pack_pages(w, &packing);
    return packing;
}

/*
 * The pool's targets in ns a pair, which are multiplied by what the reference takes beside them.
 * They come from a machine of two cores whose reading of the reference was not kept; a machine of
 * that kind reads TARGET_REFERENCE_NS when it is quiet, and so that is taken for it.
 */
#define TARGET_REFERENCE_NS 5.5
static const struct {
    const char *name;
    double ns;
} targets[] = {{"random", 60}, {"train", 40}, {"traindyn", 50}, {"churn", 35}, {"pingpong", 32}};

/* The workload's target on this machine, or 0. */
static double target_of(const char *name, double reference_ns) {
    for (unsigned i = 0; i < sizeof targets / sizeof *targets; i++)
        if (!strcmp(targets[i].name, name))
            return targets[i].ns * reference_ns / TARGET_REFERENCE_NS;
    return 0;
}

static void show(const char *name, const struct workload *w, bool timed) {
    struct speed speed = timed ? time_pairs(w) : (struct speed){0};
    struct tail tail = timed ? time_calls(w) : (struct tail){0};
    struct packing packing = time_packing(w);
    const char *form = json ? "{\"workload\":\"%s\",\"ns_per_pair\":%.1f,\"target\":%.1f,"
                              "\"reference_ns\":%.2f,\"p50\":%.0f,"
                              "\"p99\":%.0f,\"p999\":%.0f,\"max\":%.0f,\"over_20us\":%" PRIu64
                              ",\"control_over_20us\":%" PRIu64 ",\"peak_live\":%" PRIu64
                              ",\"fixed_over_live\":%.4f,"
                              "\"grown_over_live\":%.4f,\"regions\":%" PRIu64 ",\"failed\":%" PRIu64
                              ",\"paged_ns\":%.1f,\"paged_over_live\":%.4f,"
                              "\"paged_calls\":%" PRIu64 ",\"paged_moved\":%" PRIu64 "}\n"
                            : "%-24s %7.1f %6.1f %9.2f %6.0f %6.0f %6.0f %8.0f %6" PRIu64
                              " %7" PRIu64 " %14" PRIu64 " %8.4f %8.4f %6" PRIu64 " %6" PRIu64
                              " %7.1f %8.4f %7" PRIu64 " %12" PRIu64 "\n";
    printf(form, name, speed.ns, target_of(name, speed.reference_ns), speed.reference_ns, tail.p50,
           tail.p99, tail.p999, tail.most, tail.over, tail.control_over, w->peak_live,
           packing.fixed, packing.grown, packing.regions, packing.failed, speed.paged_ns,
           packing.paged, packing.calls, packing.moved);
    fflush(stdout);
}

struct worker {
    pthread_t thread;
    struct bfc_pool *pool;
    struct workload work;
    bfc_addr *at;
    pthread_barrier_t *gate;
};

static void *work(void *context) {
    struct worker *worker = context;
    run(worker->pool, worker->work.ops, worker->work.setup, worker->at);
    pthread_barrier_wait(worker->gate);
    run(worker->pool, worker->work.ops + worker->work.setup,
        worker->work.count - worker->work.setup, worker->at);
    return NULL;
}

/* Churn by so many threads; ns a pair over all, wall clock. */
static double time_threads(unsigned threads) {
    struct device device;
    struct bfc_pool_config config = fixed_heap(64 * GIB);
    struct bfc_pool *pool = open_pool(&device, &config);
    static struct worker workers[MOST_THREADS];
    pthread_barrier_t gate;
    pthread_barrier_init(&gate, NULL, threads + 1);
    size_t steps = 4000000 / scale / threads;
    for (unsigned i = 0; i < threads; i++) {
        struct worker *worker = &workers[i];
        workload_churn(&worker->work, i + 1, 8192 / threads, steps);
        worker->pool = pool;
        worker->gate = &gate;
        worker->at = calloc(worker->work.slots, sizeof *worker->at);
        pthread_create(&worker->thread, NULL, work, worker);
    }
    pthread_barrier_wait(&gate);
    uint64_t began = now_ns();
    for (unsigned i = 0; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
    uint64_t took = now_ns() - began;
    for (unsigned i = 0; i < threads; i++) {
        workload_drop(&workers[i].work);
        free(workers[i].at);
    }
    pthread_barrier_destroy(&gate);
    bfc_pool_destroy(pool, true);
    return (double)took / (double)(steps * threads);
}

/* All numbers of threads in turn, each compared with the one thread of its own round. */
static void show_threads(void) {
    enum { COUNTS = 5 };
    double ns[COUNTS][REPEATS], over_one[COUNTS][REPEATS];
    for (int round = 0; round < REPEATS; round++)
        for (unsigned i = 0; i < COUNTS; i++) {
            ns[i][round] = time_threads(1u << i);
            over_one[i][round] = ns[i][round] / ns[0][round];
        }
    for (unsigned i = 0; i < COUNTS; i++)
        printf(json ? "{\"threads\":%u,\"ns_per_pair\":%.1f,\"over_one\":%.2f}\n"
                    : "churn, %2u threads         %7.1f   %.2f x one\n",
               1u << i, median(ns[i], REPEATS), median(over_one[i], REPEATS));
}

static uint64_t resident(void) {
    unsigned long pages = 0, total = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%lu %lu", &total, &pages) != 2)
        pages = 0;
    if (file)
        fclose(file);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Host bytes a block with so many blocks live, and what is left of them when all are freed. */
static void show_memory(uint32_t live) {
    struct device device;
    struct bfc_pool_config config;
    bfc_pool_config_default(&config);
    struct bfc_pool *pool = open_pool(&device, &config);
    bfc_addr *at = malloc(live * sizeof *at);
    memset(at, 1, live * sizeof *at);
    uint64_t before = resident();
    for (uint32_t i = 0; i < live; i++)
        run(pool, &(struct op){i, 4096}, 1, at);
    uint64_t full = resident();
    for (uint32_t i = 0; i < live; i++)
        run(pool, &(struct op){i, 0}, 1, at);
    uint64_t empty = resident();
    double each = (double)(full - before) / live;
    double left = empty > before ? (double)(empty - before) / live : 0;
    printf(json ? "{\"live\":%u,\"host_bytes_per_block\":%.1f,\"left_after_frees\":%.2f}\n"
                : "host memory, %8u live %6.1f bytes a block; %.2f left after the frees\n",
           live, each, left);
    bfc_pool_destroy(pool, true);
    free(at);
}

static void show_scaling(uint32_t live) {
    struct workload w;
    workload_churn(&w, 1, live, 2000000 / scale);
    double pair = time_pairs(&w).ns;
    struct tail tail = time_calls(&w);
    printf(json ? "{\"live\":%u,\"ns_per_pair\":%.1f,\"p999\":%.0f,\"max\":%.0f}\n"
                : "churn, %8u live       %7.1f ns, p99.9 %.0f, most %.0f\n",
           live, pair, tail.p999, tail.most);
    workload_drop(&w);
}

static bool wanted(const char *name) {
    return !only || !strcmp(only, name);
}

static void show_traces(const char *folder) {
    static const char *const names[] = {"pytorch-resnet-step",  "somas-resnet50",
                                        "iopddl-G_1",           "minimalloc-A.1048576",
                                        "minimalloc-E.1048576", "minimalloc-K.1048576"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s.csv", folder, names[i]);
        struct workload w;
        if (workload_read(&w, path)) {
            show(names[i], &w, false);
            workload_drop(&w);
        } else if (!json) {
            printf("%-24s not there\n", names[i]);
        }
    }
}

static void show_all(const char *traces) {
    static const char *const names[] = {"random", "train", "traindyn", "churn", "pingpong"};
    if (!json)
        printf("%-24s %7s %6s %9s %6s %6s %6s %8s %6s %7s %14s %8s %8s %6s %6s %7s %8s %7s %12s\n",
               "workload", "ns/pair", "target", "reference", "p50", "p99", "p99.9", "most", ">20us",
               "control", "peak live", "fixed", "grown", "region", "failed", "pages", "held",
               "calls", "moved");
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        struct workload w;
        if (wanted(names[i]) && workload_make(&w, names[i], 1, scale)) {
            show(names[i], &w, true);
            workload_drop(&w);
        }
    }
    if (traces && wanted("traces"))
        show_traces(traces);
    for (uint32_t live = 10000; live <= 1000000 && wanted("scaling"); live *= 10)
        show_scaling(live);
    if (wanted("memory"))
        show_memory(1000000);
    if (wanted("threads"))
        show_threads();
}

static int usage(void) {
    fputs("usage: pool-bench [--json] [--scale N] [--only NAME] [--traces FOLDER]\n"
          "NAME: random train traindyn churn pingpong traces scaling memory threads\n",
          stderr);
    return 2;
}

int main(int argc, char **argv) {
    const char *traces = NULL;
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (!strcmp(argv[i], "--json"))
            json = true;
        else if (!strcmp(argv[i], "--scale") && more)
            scale = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--only") && more)
            only = argv[++i];
        else if (!strcmp(argv[i], "--traces") && more)
            traces = argv[++i];
        else
            return usage();
    }
    if (!scale)
        return usage();
    show_all(traces);
}
