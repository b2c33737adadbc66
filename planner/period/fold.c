#include "planner/period/fold.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/plan.h"
#include "planner/common/number.h"

#define SERIAL_TEXT 21 /* bytes of a row's name: the digits of its serial and a zero byte */
#define SPACE_NAME 8   /* bytes of the name of a row's space */
#define ROW_NAMES (SERIAL_TEXT + SPACE_NAME)

struct folder {
    struct lifetimes *lifetimes;
    const struct events *events;
    const struct period *period;
};

static uint64_t tick_of(uint32_t event) {
    return PLAN_TICK_OF_ZERO + event;
}

static bool make_room(struct lifetimes *lifetimes, uint32_t visible) {
    /* A row whose block is freed only in the next repetition of the loop gets a second row, so
     * there may be twice as many rows. */
    const size_t n = (size_t)visible * 2 + 1;
    lifetimes->rows = calloc(n, sizeof *lifetimes->rows);
    lifetimes->ids.list = calloc(n, sizeof *lifetimes->ids.list);
    lifetimes->text.bytes = calloc(n, ROW_NAMES);
    lifetimes->visible = visible;
    return lifetimes->rows && lifetimes->ids.list && lifetimes->text.bytes;
}

/*
 * Returns the number of the space (a memory that is planned alone) in which the allocation lies,
 * and adds the space if it is new. Each device has a space for small and one for large blocks, so
 * that within a space all sizes, and so all offsets, are multiples of one alignment. Writes the
 * space's name into `name`, to which the lifetimes refer from then on. NAMES_NONE: the host has no
 * memory.
 */
static uint32_t space_of(struct lifetimes *lifetimes, const struct allocation *a, uint64_t size,
                         char name[SPACE_NAME]) {
    bool fresh;
    const uint64_t key = (uint64_t)a->device << 1 | (size >= BFC_PLAN_LARGE);
    memcpy(name, &key, SPACE_NAME);
    const uint32_t space = names_add(&lifetimes->spaces, (struct name){name, SPACE_NAME}, &fresh);
    if (!fresh)
        return space;
    uint32_t *devices =
        realloc(lifetimes->devices, lifetimes->spaces.count * sizeof *lifetimes->devices);
    if (!devices)
        return NAMES_NONE;
    lifetimes->devices = devices;
    devices[space] = a->device;
    return space;
}

/* Adds a row for the allocation, whose size is `bytes`, rounded as the pool rounds sizes. */
static struct lifetime *add_row(struct folder *folder, const struct allocation *a, uint64_t bytes) {
    struct lifetimes *lifetimes = folder->lifetimes;
    const uint32_t number = lifetimes->count++;
    struct lifetime *row = &lifetimes->rows[number];
    const uint64_t size = bfc_plan_round(bytes);
    char *text = lifetimes->text.bytes + (size_t)number * ROW_NAMES;
    *row = (struct lifetime){.size = size,
                             .pin = NOT_PINNED,
                             .alias = ROW_NONE,
                             .group = ROW_NONE,
                             .space = space_of(lifetimes, a, size, text + SERIAL_TEXT),
                             .stream = a->stream,
                             .thread = a->thread};
    const int length = snprintf(text, SERIAL_TEXT, "%" PRIu64, a->serial);
    lifetimes->ids.list[number] = (struct name){text, (size_t)length};
    lifetimes->ids.count = lifetimes->count;
    return row;
}

static void add_prefix(struct folder *folder, uint32_t allocation, uint32_t end) {
    const struct allocation *a = &folder->events->allocations[allocation];
    struct lifetime *row = add_row(folder, a, a->bytes);
    row->birth = tick_of(a->birth);
    row->death = tick_of(a->death < end ? a->death : end);
}

static void add_slot(struct folder *folder, uint32_t slot, uint32_t end) {
    const struct period *period = folder->period;
    const struct allocation *a = &folder->events->allocations[period->prefix + slot];
    struct lifetime *row = add_row(folder, a, period_slot_bytes(period, folder->events, slot));
    row->birth = tick_of(a->birth);
    row->death = tick_of(a->death < end ? a->death : end);
    if (a->death <= end)
        return;
    const uint32_t rest = a->death == NEVER ? NEVER : a->death - period->length_events;
    /* The block still lives when the next repetition makes the same allocation. Since the two
     * blocks cannot have the same address, the row gets no address in the plan. */
    if (rest > a->birth) {
        row->unplanned = row->size;
        row->size = 0;
        return;
    }
    row->wraps_until = tick_of(rest);
}

/* Adds, after all other rows, a second row for each row whose block is freed only in the next
 * repetition of the loop. The second row lives from the start of the repetition to the time of that
 * free, and shares the memory of the first row. */
static void add_halves(struct folder *folder) {
    struct lifetimes *lifetimes = folder->lifetimes;
    const uint64_t start = tick_of(folder->period->prefix_events);
    for (uint32_t i = 0; i < lifetimes->visible; i++) {
        const struct lifetime row = lifetimes->rows[i];
        if (row.wraps_until <= start)
            continue;
        struct lifetime *half = &lifetimes->rows[lifetimes->count];
        *half = row;
        half->birth = start;
        half->death = row.wraps_until;
        half->alias = i;
        lifetimes->ids.list[lifetimes->count++] = lifetimes->ids.list[i];
        lifetimes->has_alias = true;
    }
    lifetimes->ids.count = lifetimes->count;
}

static bool spaces_fail(const struct lifetimes *lifetimes) {
    for (uint32_t i = 0; i < lifetimes->count; i++)
        if (lifetimes->rows[i].space == NAMES_NONE)
            return true;
    return false;
}

bool fold(struct lifetimes *lifetimes, const struct events *events, const struct period *period,
          const char *path, uint64_t program_hash, struct plan_error *error) {
    struct lifetimes result = {.path = path, .program_hash = program_hash, .from_trace = true};
    struct folder folder = {&result, events, period};
    const uint32_t first = period->length > 0 ? period->prefix : events->allocations_count;
    const uint32_t prefix = period->alone ? 0 : first;
    const uint32_t end =
        period->length > 0 ? period->prefix_events + period->length_events : events->count;
    if (!make_room(&result, prefix + period->length)) {
        lifetimes_free(&result);
        return plan_fail_memory(error);
    }
    result.prefix = prefix;
    result.period = period->length;
    result.jitter = period->jitter;
    if (period->length > 0) {
        result.period_birth = tick_of(period->prefix_events);
        result.period_ticks = period->length_events;
    }
    for (uint32_t i = 0; i < prefix; i++)
        add_prefix(&folder, i, end);
    for (uint32_t i = 0; i < period->length; i++)
        add_slot(&folder, i, end);
    add_halves(&folder);
    if (spaces_fail(&result)) {
        lifetimes_free(&result);
        return plan_fail_memory(error);
    }
    lifetimes_seal(&result);
    *lifetimes = result;
    return true;
}
