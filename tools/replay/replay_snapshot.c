/*
 * Writes a replay in files for other viewers: a memory snapshot in PyTorch's format (a pickle that
 * its web viewer and `torch.cuda._memory_viz` read), and Chrome's trace events, for Perfetto.
 *
 * A snapshot has the regions (PyTorch's segments) as they are at the end of the replay, each with
 * all its blocks, also the free ones, and for each device the allocations and frees in their order.
 * A replay has no times, so the numbers of calls are written as microseconds. Call stacks are not
 * written: each allocation has a single frame with its name.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/replay/show_replay.h"
#include "tools/snapshot/snapshot.h"

/* Regions or blocks that exist at the end of the replay, sorted by device and address. */
struct remaining {
    const struct log_entry **list;
    size_t count;
};

struct snapshot {
    const struct input *input;
    const struct settings *settings;
    const struct log *log;
    const char *trace;
    struct pickle pickle;
    uint32_t regions_most; /* the highest number that a region has on any device */
    struct remaining regions, blocks;
};

static int by_place(const void *left, const void *right) {
    const struct log_entry *a = *(const struct log_entry *const *)left;
    const struct log_entry *b = *(const struct log_entry *const *)right;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return a->address < b->address ? -1 : a->address > b->address;
}

/*
 * Returns the index of a log entry's allocation or region in an array that has all allocations
 * first, and behind them the regions of each device, since each device numbers its regions from 1.
 */
static size_t slot_of(const struct snapshot *s, const struct log_entry *entry) {
    if (entry->op == LOG_ALLOCATE || entry->op == LOG_FREE)
        return entry->allocation;
    return s->input->events.allocations_count + (size_t)entry->device * (s->regions_most + 1) +
           entry->region;
}

/* Moves the pointers that are not NULL to the front of the array and sorts them by device and
 * address. */
static struct remaining collect_remaining(const struct log_entry **slots, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (slots[i])
            slots[kept++] = slots[i];
    qsort(slots, kept, sizeof(const struct log_entry *), by_place);
    return (struct remaining){slots, kept};
}

static bool find_remaining(struct snapshot *s) {
    for (size_t i = 0; i < s->log->count; i++)
        if (s->log->list[i].region > s->regions_most)
            s->regions_most = s->log->list[i].region;
    size_t allocations = s->input->events.allocations_count;
    size_t regions = (size_t)s->input->devices * (s->regions_most + 1);
    const struct log_entry **slots =
        calloc(allocations + regions + 1, sizeof(const struct log_entry *));
    if (!slots)
        return false;
    for (size_t i = 0; i < s->log->count; i++) {
        const struct log_entry *entry = &s->log->list[i];
        bool begins = entry->op == LOG_ALLOCATE || entry->op == LOG_RESERVE;
        if (entry->op != LOG_FAIL)
            slots[slot_of(s, entry)] = begins ? entry : NULL;
    }
    s->blocks = collect_remaining(slots, allocations);
    s->regions = collect_remaining(slots + allocations, regions);
    return true;
}

/* Writes a call stack with a single frame, whose name is that of the CSV's row or the trace's
 * allocation. */
static void put_frames(struct snapshot *s, const struct log_entry *entry) {
    struct pickle *p = &s->pickle;
    const struct allocation *a = &s->input->events.allocations[entry->allocation];
    char name[96];
    snprintf(name, sizeof name, "%s %" PRIu64 ", thread %u",
             s->input->from_trace ? "allocation" : "row", a->serial, a->thread);
    struct pickle_list frames = pickle_list(p);
    snapshot_put_frame(p, &frames, name, s->trace, a->serial);
    pickle_list_end(p, &frames);
}

/* Writes a block. `entry` is its allocation; NULL: the block is free. */
static void put_block(struct snapshot *s, const struct log_entry *entry, uint64_t address,
                      uint64_t size) {
    struct pickle *p = &s->pickle;
    snapshot_begin_block(
        p, &(struct snapshot_block){.address = address,
                                    .size = size,
                                    .requested = entry ? entry->bytes : 0,
                                    .state = entry ? SNAPSHOT_ALLOCATED : SNAPSHOT_INACTIVE});
    if (entry)
        put_frames(s, entry);
    else
        snapshot_put_no_frames(p);
    pickle_dict_end(p);
}

/* Returns the index in s->blocks of the first block that lies in the region or behind it. */
static size_t first_in(const struct snapshot *s, const struct log_entry *region) {
    size_t low = 0, high = s->blocks.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_place(&s->blocks.list[middle], &region) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_in(const struct snapshot *s, size_t i, const struct log_entry *region) {
    return i < s->blocks.count && s->blocks.list[i]->device == region->device &&
           s->blocks.list[i]->address < region->address + region->bytes;
}

/* Writes the blocks of a region, with a free block for each gap between blocks in use. */
static void put_blocks(struct snapshot *s, const struct log_entry *region) {
    uint64_t at = region->address, end = region->address + region->bytes;
    struct pickle_list blocks = pickle_list(&s->pickle);
    for (size_t i = first_in(s, region); is_in(s, i, region); i++) {
        const struct log_entry *block = s->blocks.list[i];
        if (block->address > at) {
            pickle_item(&s->pickle, &blocks);
            put_block(s, NULL, at, block->address - at);
        }
        pickle_item(&s->pickle, &blocks);
        put_block(s, block, block->address, block->size);
        at = block->address + block->size;
    }
    if (at < end) {
        pickle_item(&s->pickle, &blocks);
        put_block(s, NULL, at, end - at);
    }
    pickle_list_end(&s->pickle, &blocks);
}

static void put_segment(struct snapshot *s, const struct log_entry *region) {
    struct pickle *p = &s->pickle;
    uint64_t taken = 0, requested = 0;
    for (size_t i = first_in(s, region); is_in(s, i, region); i++) {
        taken += s->blocks.list[i]->size;
        requested += s->blocks.list[i]->bytes;
    }
    snapshot_begin_segment(p, &(struct snapshot_segment){.device = region->device,
                                                         .address = region->address,
                                                         .size = region->bytes,
                                                         .allocated = taken,
                                                         .active = taken,
                                                         .requested = requested});
    put_blocks(s, region);
    pickle_dict_end(p);
}

static void put_segments(struct snapshot *s) {
    pickle_word(&s->pickle, "segments");
    struct pickle_list segments = pickle_list(&s->pickle);
    for (size_t i = 0; i < s->regions.count; i++) {
        pickle_item(&s->pickle, &segments);
        put_segment(s, s->regions.list[i]);
    }
    pickle_list_end(&s->pickle, &segments);
}

/* Writes an entry of the list of calls. `left` is how many bytes the device had left; for a failed
 * allocation, which has no address, it is written as the address. */
static void put_call(struct snapshot *s, const struct log_entry *entry, const char *action,
                     uint64_t left) {
    struct pickle *p = &s->pickle;
    bool fails = entry->op == LOG_FAIL;
    snapshot_begin_call(p, &(struct snapshot_call){.action = action,
                                                   .fails = fails,
                                                   .address = fails ? left : entry->address,
                                                   .size = entry->bytes,
                                                   .us = entry->call});
    if (entry->op == LOG_ALLOCATE || fails)
        put_frames(s, entry);
    else
        snapshot_put_no_frames(p);
    pickle_dict_end(p);
}

static void put_entry(struct snapshot *s, struct pickle_list *calls, const struct log_entry *entry,
                      uint64_t left) {
    static const char *const actions[] = {[LOG_RESERVE] = "segment_alloc",
                                          [LOG_RELEASE] = "segment_free",
                                          [LOG_ALLOCATE] = "alloc",
                                          [LOG_FREE] = "free_requested",
                                          [LOG_FAIL] = "oom"};
    pickle_item(&s->pickle, calls);
    put_call(s, entry, actions[entry->op], left);
    if (entry->op != LOG_FREE)
        return;
    pickle_item(&s->pickle, calls);
    put_call(s, entry, "free_completed", 0);
}

static void put_device(struct snapshot *s, uint32_t device) {
    uint64_t reserved = 0;
    struct pickle_list calls = pickle_list(&s->pickle);
    for (size_t i = 0; i < s->log->count; i++) {
        const struct log_entry *entry = &s->log->list[i];
        if (entry->device != device)
            continue;
        reserved += entry->op == LOG_RESERVE ? entry->bytes : 0;
        reserved -= entry->op == LOG_RELEASE ? entry->bytes : 0;
        bool ends = s->settings->memory != UINT64_MAX;
        put_entry(s, &calls, entry, ends ? s->settings->memory - reserved : 0);
    }
    pickle_list_end(&s->pickle, &calls);
}

static void put_snapshot(struct snapshot *s, FILE *stream) {
    pickle_begin(&s->pickle, stream);
    pickle_dict(&s->pickle);
    put_segments(s);
    pickle_word(&s->pickle, "device_traces");
    struct pickle_list devices = pickle_list(&s->pickle);
    for (uint32_t i = 0; i < s->input->devices; i++) {
        pickle_item(&s->pickle, &devices);
        put_device(s, i);
    }
    pickle_list_end(&s->pickle, &devices);
    pickle_dict_end(&s->pickle);
    pickle_end(&s->pickle);
}

bool show_snapshot(const struct input *input, const struct settings *settings,
                   const struct log *log, const char *trace, const char *path,
                   struct plan_error *error) {
    struct snapshot s = {.input = input, .settings = settings, .log = log, .trace = trace};
    struct file_writer writer;
    bool good = find_remaining(&s) || plan_fail_memory(error);
    good = good && file_open(&writer, path, error);
    if (good) {
        put_snapshot(&s, writer.stream);
        good = file_close(&writer, error);
    }
    free(s.blocks.list);
    return good;
}

struct counters {
    uint64_t live, reserved;
};

static void put_counters(const struct log_entry *entry, struct counters *c, FILE *stream) {
    c->live += entry->op == LOG_ALLOCATE ? entry->bytes : 0;
    c->live -= entry->op == LOG_FREE ? entry->bytes : 0;
    c->reserved += entry->op == LOG_RESERVE ? entry->bytes : 0;
    c->reserved -= entry->op == LOG_RELEASE ? entry->bytes : 0;
    if (entry->op == LOG_FAIL)
        fprintf(
            stream,
            ",\n{\"name\":\"out of memory\",\"ph\":\"i\",\"s\":\"p\",\"pid\":%u,\"tid\":0,\"ts\":"
            "%u,\"args\":{\"bytes\":%" PRIu64 "}}",
            entry->device, entry->call, entry->bytes);
    else
        fprintf(
            stream,
            ",\n{\"name\":\"memory\",\"ph\":\"C\",\"pid\":%u,\"ts\":%u,\"args\":{\"live\":%" PRIu64
            ",\"reserved\":%" PRIu64 "}}",
            entry->device, entry->call, c->live, c->reserved);
}

bool show_chrome_trace(const struct input *input, const struct log *log, const char *path,
                       struct plan_error *error) {
    struct counters *counters = calloc(input->devices, sizeof *counters);
    struct file_writer writer;
    bool good = counters || plan_fail_memory(error);
    good = good && file_open(&writer, path, error);
    if (good) {
        fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", writer.stream);
        for (uint32_t i = 0; i < input->devices; i++)
            fprintf(writer.stream,
                    "%s\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%u,\"args\":{\"name\":"
                    "\"device %u\"}}",
                    i ? "," : "", i, i);
        for (size_t i = 0; i < log->count; i++)
            put_counters(&log->list[i], &counters[log->list[i].device], writer.stream);
        fputs("\n]}\n", writer.stream);
        good = file_close(&writer, error);
    }
    free(counters);
    return good;
}
