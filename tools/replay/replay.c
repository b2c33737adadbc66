/* Replays an input: makes its allocations and frees with the library's pool over simulated devices.
 * A pass goes through the whole input once. The numbers in the result are from a replay with
 * settings.repeats passes; with settings.time_it this replay is made again several times, only to
 * measure the time. */
#include "tools/replay/replay.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "pool/pages.h"

/* If neither --memory nor the trace says how much memory a device has, this is assumed, for
 * settings that are a fraction of the device's memory. */
#define FRACTIONS_OF (UINT64_C(80) << 30)
#define TIMED_NS UINT64_C(60000000)
#define TIMED_RUNS 20

#define NOT_HELD UINT64_MAX

struct player {
    const struct input *input;
    const struct settings *settings;
    struct device *devices;
    struct bfc_pool **pools;
    bfc_addr *held; /* for each allocation: the address of its block; NOT_HELD: it has none */
    struct log *log;
    uint64_t reserved, peak_reserved, live, failed, pairs, frees;
    struct result *result;
};

static uint64_t total_of(const struct settings *settings) {
    return settings->memory == UINT64_MAX ? FRACTIONS_OF : settings->memory;
}

static uint64_t capacity_of(const struct settings *settings) {
    uint64_t left = bfc_amount_bytes(&settings->options.reserve, total_of(settings));
    return left < settings->memory ? settings->memory - left : 0;
}

/* Whether the pools use pages instead of whole regions. In a job BFC_BACKING=auto chooses pages if
 * the process has one device; in a replay it does if the input has one. */
static bool is_paged(const struct input *input, const struct settings *settings) {
    return settings->options.backing == BFC_BACKING_PAGES ||
           (settings->options.backing == BFC_BACKING_AUTO && input->devices == 1);
}

static bool open_device(struct player *p, uint32_t i) {
    const struct settings *settings = p->settings;
    struct bfc_pool_config config;
    p->devices[i] = (struct device){.number = i,
                                    .capacity = capacity_of(settings),
                                    .lag = settings->lag,
                                    .reserved = &p->reserved,
                                    .peak = &p->peak_reserved,
                                    .log = p->log};
    size_t frees = (size_t)p->input->events.count * settings->repeats;
    p->devices[i].recorded_at = malloc((frees + 1) * sizeof(uint32_t));
    bfc_pool_config_default(&config);
    bfc_options_configure(&settings->options, total_of(settings), &config);
    if (settings->page_most)
        config.page_most = settings->page_most;
    struct bfc_upstream upstream = device_upstream(&p->devices[i], is_paged(p->input, settings));
    return p->devices[i].recorded_at && bfc_pool_create(&p->pools[i], &config, &upstream) == BFC_OK;
}

static void close_player(struct player *p) {
    for (uint32_t i = 0; p->devices && p->pools && i < p->input->devices; i++) {
        bfc_pool_destroy(p->pools[i], false);
        device_close(&p->devices[i]);
    }
    free(p->devices);
    free(p->pools);
    free(p->held);
}

static bool open_player(struct player *p, const struct input *input,
                        const struct settings *settings, struct log *log) {
    *p = (struct player){.input = input, .settings = settings, .log = log};
    p->devices = calloc(input->devices, sizeof *p->devices);
    p->pools = calloc(input->devices, sizeof(struct bfc_pool *));
    p->held = malloc(((size_t)input->events.allocations_count + 1) * sizeof *p->held);
    bool good = p->devices && p->pools && p->held;
    for (uint32_t i = 0; good && i < input->devices; i++)
        good = open_device(p, i);
    if (!good)
        close_player(p);
    return good;
}

static bool is_bypassed(const struct player *p, uint64_t bytes) {
    return bytes > p->settings->options.bypass_above;
}

static bool allocate_past(struct device *device, struct bfc_pool *pool, uint64_t bytes,
                          struct bfc_block_info *block) {
    block->size = bytes;
    if (device_reserve(device, bytes, &block->start, NULL) == BFC_RESERVED)
        return true;
    return bfc_pool_trim(pool, UINT64_MAX) &&
           device_reserve(device, bytes, &block->start, NULL) == BFC_RESERVED;
}

static bool allocate_from(const struct player *p, uint32_t device, uint64_t bytes,
                          struct bfc_block_info *block) {
    unsigned flags = p->settings->options.free_mode == BFC_FREE_ORDERED ? BFC_ALLOCATE_PENDING : 0;
    if (is_bypassed(p, bytes))
        return allocate_past(&p->devices[device], p->pools[device], bytes, block);
    return bfc_pool_allocate(p->pools[device], bytes, flags, block) == BFC_OK;
}

static void note_call(struct player *p, enum log_op op, uint32_t allocation, bfc_addr address,
                      uint64_t size) {
    const struct allocation *a = &p->input->events.allocations[allocation];
    const struct device *device = &p->devices[a->device];
    log_add(p->log,
            (struct log_entry){.op = op,
                               .address = address,
                               .bytes = a->bytes,
                               .size = size,
                               .device = a->device,
                               .call = device->call,
                               .allocation = allocation,
                               .region = op == LOG_FAIL ? 0 : device_region_of(device, address)});
}

static void allocate_block(struct player *p, uint32_t allocation) {
    const struct allocation *a = &p->input->events.allocations[allocation];
    struct bfc_block_info block;
    p->held[allocation] = NOT_HELD;
    if (a->bytes == 0)
        return; /* the driver refuses to allocate 0 bytes; not counted as a failure */
    if (!allocate_from(p, a->device, a->bytes, &block)) {
        p->failed++;
        if (p->log)
            note_call(p, LOG_FAIL, allocation, 0, 0);
        return;
    }
    p->held[allocation] = block.start;
    p->pairs++;
    p->live += a->bytes;
    p->result->peak_live = bfc_max(p->result->peak_live, p->live);
    if (p->log)
        note_call(p, LOG_ALLOCATE, allocation, block.start, block.size);
}

static void release_block(struct player *p, uint32_t allocation) {
    const struct allocation *a = &p->input->events.allocations[allocation];
    struct device *device = &p->devices[a->device];
    bfc_addr start = p->held[allocation];
    if (start == NOT_HELD)
        return;
    p->held[allocation] = NOT_HELD;
    p->frees++;
    p->live -= a->bytes;
    if (p->log)
        note_call(p, LOG_FREE, allocation, start, 0);
    if (is_bypassed(p, a->bytes)) {
        device_release(device, start, a->bytes, NULL);
        return;
    }
    bool waits = p->settings->options.free_mode == BFC_FREE_SYNC;
    if (waits && bfc_pool_has_surplus(p->pools[a->device]) &&
        bfc_pool_begin_surplus(p->pools[a->device]))
        bfc_pool_release_surplus(p->pools[a->device], true);
    bfc_pool_free(p->pools[a->device], start, waits ? BFC_NO_FENCE : device_fence(device));
}

/* Before each pass (replay of the whole input) but the first, frees the blocks that are left from
 * the previous pass. */
static void free_all(struct player *p, uint32_t pass) {
    const uint32_t count = p->input->events.allocations_count;
    for (uint32_t i = 0; pass > 0 && i < count; i++)
        release_block(p, i);
}

static void play_pass(struct player *p, uint32_t pass) {
    const struct events *events = &p->input->events;
    free_all(p, pass);
    for (uint32_t call = 0; call < events->count; call++) {
        const struct event *event = &events->list[call];
        p->devices[events->allocations[event->allocation].device].call =
            pass * events->count + call;
        if (event->is_free)
            release_block(p, event->allocation);
        else
            allocate_block(p, event->allocation);
    }
}

static uint64_t calls_made(const struct player *p) {
    uint64_t calls = 0;
    for (uint32_t i = 0; i < p->input->devices; i++)
        calls += p->devices[i].calls;
    return calls;
}

/* Returns how many bytes of pages were created or moved so far. */
static uint64_t bytes_placed(const struct player *p) {
    uint64_t bytes = 0;
    struct bfc_page_stats stats;
    for (uint32_t i = 0; i < p->input->devices; i++)
        if (bfc_pool_page_stats(p->pools[i], &stats))
            bytes += stats.created + stats.moved;
    return bytes;
}

static void play_passes(struct player *p) {
    for (uint32_t pass = 0; pass < p->settings->repeats; pass++) {
        uint64_t before = calls_made(p);
        play_pass(p, pass);
        p->result->pass_calls[pass] = calls_made(p) - before;
        if (pass == 0)
            p->result->pass_bytes = bytes_placed(p);
    }
}

static double device_us(const struct player *p, uint32_t i) {
    return device_pages_us(&p->devices[i]) +
           (double)p->devices[i].plain_calls * p->settings->device_us;
}

static uint64_t moved_by(struct bfc_pool *pool) {
    struct bfc_page_stats stats;
    return bfc_pool_page_stats(pool, &stats) ? stats.moved : 0;
}

static void sum_up(const struct player *p, struct result *result) {
    for (uint32_t i = 0; i < p->input->devices; i++) {
        struct bfc_pool_stats stats;
        bfc_pool_read_stats(p->pools[i], &stats);
        result->device_calls += p->devices[i].calls;
        result->device_us += device_us(p, i);
        result->retries += stats.retries;
        result->waits += stats.waits;
        result->moved += moved_by(p->pools[i]);
    }
    result->paged = is_paged(p->input, p->settings);
    result->pairs = p->pairs;
    result->frees = p->frees;
    result->spilled = input_spilled(p->input);
    result->failed = p->failed;
    result->peak_reserved = p->peak_reserved;
    if (p->peak_reserved)
        result->waste = 1 - (double)result->peak_live / (double)p->peak_reserved;
}

/* Measures how long an allocation and its free take, in the fastest of several replays, since
 * disturbances can only make a replay longer. */
static bool measure_replay(const struct input *input, const struct settings *settings,
                           struct result *result) {
    uint64_t best = UINT64_MAX, began = bfc_now_ns();
    for (int i = 0; i < TIMED_RUNS && (i < 2 || bfc_now_ns() - began < TIMED_NS); i++) {
        struct result unused = {0};
        struct player p;
        if (!open_player(&p, input, settings, NULL))
            return false;
        p.result = &unused;
        uint32_t last = settings->repeats - 1;
        for (uint32_t pass = 0; pass < last; pass++)
            play_pass(&p, pass);
        free_all(&p, last);
        uint64_t start = bfc_now_ns();
        play_pass(&p, last);
        best = bfc_min(best, bfc_now_ns() - start);
        close_player(&p);
    }
    if (result->pairs)
        result->ns_per_pair = (double)best * settings->repeats / (double)result->pairs;
    return true;
}

bool replay(const struct input *input, const struct settings *settings, struct log *log,
            struct result *result, struct plan_error *error) {
    struct player p;
    *result = (struct result){0};
    if (!open_player(&p, input, settings, log))
        return plan_fail_memory(error);
    p.result = result;
    play_passes(&p);
    sum_up(&p, result);
    close_player(&p);
    if ((log && log->lost) || (settings->time_it && !measure_replay(input, settings, result)))
        return plan_fail_memory(error);
    return true;
}
