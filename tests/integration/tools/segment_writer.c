/* Honest segments for tests. */
#include "tests/integration/tools/segment_writer.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

static uint64_t pid_namespace(void) {
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? (uint64_t)status.st_ino : 0;
}

uint64_t test_segment_start_of(int pid) {
    char text[1024] = "", path[64];
    unsigned long long start = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    if (fgets(text, sizeof text, file)) {
        const char *field = strrchr(text, ')');
        for (int i = 2; field && i < 22; i++)
            field = strchr(field + 1, ' ');
        if (field)
            sscanf(field, "%llu", &start);
    }
    fclose(file);
    return start;
}

static void fill_pool(struct bfc_segment_pool *pool) {
    pool->state = BFC_POOL_ACTIVE;
    pool->device = 0;
    pool->context_id = 7;
    pool->device_total = UINT64_C(16384) * MIB;
    for (uint8_t i = 0; i < 16; i++)
        pool->device_uuid[i] = i;
    strcpy(pool->device_name, "Made-up GPU");
    strcpy(pool->device_bus_id, "0000:3B:00.0");
    pool->device_free = UINT64_C(12000) * MIB;
    pool->device_free_ns = 1;
    pool->host_waits = 900;
    pool->lanes[0].host_waits = 99;
    pool->lanes[1].host_waits = 1;
    pool->lanes[0].fences = 40;
    pool->lanes[1].fences = 2;
    pool->lanes[1].device_waits = 7;
    pool->host_wait_ns = 2500000;
    pool->fit = (struct bfc_segment_fit){.request = 8 * MIB, .too_small = 15 * MIB};
    pool->stats = (struct bfc_pool_stats){
        .reserved = 100 * MIB,
        .in_use = 60 * MIB,
        .requested = 59 * MIB,
        .ready = 30 * MIB,
        .pending = 8 * MIB,
        .deferred = 2 * MIB,
        .largest_free = 30 * MIB,
        .regions = 3,
        .blocks = 12,
        .peak_reserved = 100 * MIB,
        .peak_in_use = 90 * MIB,
        .peak_requested = 89 * MIB,
        .allocations = 2000,
        .frees = 1988,
        .hits = 1999,
        .misses = 1,
        .splits = 50,
        .merges = 40,
        .reserve_calls = 4,
        .refusals = 1,
        .out_of_memory = 1,
    };
}

/* Each with figures of its own; and a thread waits. */
static void fill_last_resorts(union test_segment *segment) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    struct bfc_rung_counts *rungs = segment->pools[0].rungs;
    rungs[BFC_RUNG_CONTEXTS] = (struct bfc_rung_counts){6, 1, 2000000};
    rungs[BFC_RUNG_JOBS] = (struct bfc_rung_counts){5, 3, 7000000};
    rungs[BFC_RUNG_WAIT] = (struct bfc_rung_counts){4, 2, 9000000000};
    rungs[BFC_RUNG_SPILL] = (struct bfc_rung_counts){2, 2, 8000000};
    segment->pools[0].stats.last_resorts = 7;
    segment->pools[0].stats.last_resorts_saved = 1;
    segment->pools[0].stats.last_resort_ns = 1000000;
    segment->header.waiters[1] =
        (struct bfc_waiter){.bytes = 3277 * MIB, .since_ns = ns - 12000000000u, .position = 2};
}

/* 1,999 small requests and a large one; what was timed took 40 to 80 ns. */
static void fill_histograms(struct bfc_segment_pool *pool) {
    pool->lanes[0].sizes[bfc_size_bin(65536)] = 1990;
    pool->lanes[1].sizes[bfc_size_bin(65536)] = 9;
    pool->lanes[1].sizes[bfc_size_bin(64 * MIB)] = 1;
    pool->allocate_latency[bfc_latency_bin(40)] = 30;
    pool->allocate_latency[bfc_latency_bin(80)] = 2;
    pool->free_latency[bfc_latency_bin(2500)] = 32;
    pool->host_wait_latency[bfc_latency_bin(2500)] = 1000;
}

/* Two regions of pool 0: half in use, then pending; wholly ready. */
static void fill_map(struct bfc_map *map) {
    map->rows = 2;
    map->refreshed_ns = 1;
    map->row[0] = (struct bfc_map_row){.start = 1 << 30, .size = 64 * MIB, .cell_bytes = MIB / 2};
    memset(map->row[0].cells, 0xF0, 64);
    memset(map->row[0].cells + 64, 0x0F, 64);
    map->row[1] = (struct bfc_map_row){.start = 2u << 30, .size = 32 * MIB, .cell_bytes = MIB / 4};
}

static void put_event(struct bfc_event *ring, uint64_t *next, uint64_t size,
                      enum bfc_event_kind kind, uint64_t address, uint64_t bytes) {
    uint64_t number = (*next)++;
    ring[number % size] =
        (struct bfc_event){number + 1, bfc_event_what(kind, 0, 1000 * number), address, bytes};
}

/* One round and a bit, a slot of it empty. */
static void fill_events(union test_segment *segment) {
    uint64_t *next = &segment->header.next_event;
    put_event(segment->landmarks, &segment->header.next_landmark, BFC_LANDMARKS, BFC_EVENT_GROW,
              1 << 30, 64 * MIB);
    put_event(segment->landmarks, &segment->header.next_landmark, BFC_LANDMARKS,
              BFC_EVENT_OUT_OF_MEMORY, 0, 4096 * MIB);
    const enum bfc_event_kind saved[] = {BFC_EVENT_WAITED, BFC_EVENT_SAVED_CONTEXTS,
                                         BFC_EVENT_SAVED_JOBS, BFC_EVENT_SPILLED};
    for (unsigned i = 0; i < sizeof saved / sizeof saved[0]; i++)
        put_event(segment->landmarks, &segment->header.next_landmark, BFC_LANDMARKS, saved[i],
                  7000000 + i, 64 * MIB);
    while (*next < BFC_EVENTS + 10)
        put_event(segment->events, next, BFC_EVENTS,
                  *next % 2 ? BFC_EVENT_FREE : BFC_EVENT_ALLOCATE, 1 << 30, *next % 2 ? 0 : 65536);
    segment->events[5].stamp = 0;
}

void test_segment_fill(union test_segment *segment) {
    struct bfc_segment_header *header = &segment->header;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    memset(segment, 0, sizeof *segment);
    header->version = BFC_SEGMENT_VERSION;
    header->header_size = sizeof *header;
    header->total_size = BFC_SEGMENT_SIZE;
    header->pool_size = sizeof(struct bfc_segment_pool);
    header->pool_count = BFC_SEGMENT_POOLS;
    header->pid = getpid();
    header->uid = getuid();
    header->pid_namespace = pid_namespace();
    header->start_time = test_segment_start_of(getpid());
    header->created_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    strcpy(header->command, "made-up --job");
    strcpy(header->library, "0.0.test");
    strcpy(header->configuration, "BFC_FREE=lazy\nBFC_LIMIT=none\nBFC_TO_COME=1\n");
    header->pooled_allocations = 10; /* of pools of former contexts */
    header->pooled_frees = 10;
    header->forwarded_frees[BFC_FORWARD_FOREIGN] = 5;
    header->bypassed_calls[BFC_BYPASS_MANAGED] = 2;
    header->bypassed_bytes[BFC_BYPASS_MANAGED] = 3 * MIB;
    header->gate = (struct bfc_segment_gate){
        .state = BFC_GATE_COUNTS, .streams = BFC_STREAMS_ONE, .left = 2, .checks = 3};
    strcpy(header->job, "made-up.1");
    header->rank = 3;
    header->local_rank = 1;
    header->ranks = 4;
    fill_pool(&segment->pools[0]);
    fill_histograms(&segment->pools[0]);
    fill_map(&segment->map);
    fill_events(segment);
    fill_last_resorts(segment);
    atomic_thread_fence(memory_order_release);
    header->magic = BFC_SEGMENT_MAGIC;
}

void test_segment_name(const union test_segment *segment, char *text, size_t size) {
    const struct bfc_segment_header *header = &segment->header;
    snprintf(text, size, BFC_SEGMENT_NAME_PREFIX "%u.%lu.%d", header->uid,
             (unsigned long)header->pid_namespace, header->pid);
}

static void store(uint64_t *field, uint64_t value) {
    atomic_store_explicit((_Atomic uint64_t *)field, value, memory_order_relaxed);
}

static void begin(struct bfc_pool_stats *stats) {
    store(&stats->sequence, stats->sequence + 1);
    atomic_thread_fence(memory_order_release);
}

static void end(struct bfc_pool_stats *stats) {
    atomic_store_explicit((_Atomic uint64_t *)&stats->sequence, stats->sequence + 1,
                          memory_order_release);
}

void test_segment_write_pair(union test_segment *segment, uint64_t bytes) {
    struct bfc_pool_stats *stats = &segment->pools[0].stats;
    begin(stats);
    store(&stats->in_use, stats->in_use + bytes);
    store(&stats->ready, stats->ready - bytes);
    store(&stats->allocations, stats->allocations + 1);
    store(&stats->hits, stats->hits + 1);
    end(stats);
    begin(stats);
    store(&stats->in_use, stats->in_use - bytes);
    store(&stats->ready, stats->ready + bytes);
    store(&stats->frees, stats->frees + 1);
    end(stats);
}
