#include "tools/replay/input.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/plan/io/csv.h"
#include "tools/plan/io/plan_file.h"
#include "tools/plan/trace/read_trace.h"

/* The most devices that an input may have. The replay makes a pool for each device of a trace, or
 * for each space of a CSV. */
#define MOST_DEVICES 64

static void take_stack(struct input *input, const struct bfc_trace_record *record) {
    const uint32_t i = events_find(&input->events, record->serial);
    if (i != NEVER)
        input->stacks[i] =
            (struct input_stack){record->stream, (double)record->bytes * BFC_TRACE_WEIGHT_UNIT};
}

static bool take_stacks(struct input *input, const struct trace *trace, const char *path,
                        struct plan_error *error) {
    if (stacks_sites(&trace->stacks) == 0)
        return true;
    if (!stacks_who(&trace->stacks, &input->who))
        return plan_fail(error, "%s: its call stacks are damaged", path);
    input->stacks = calloc((size_t)input->events.allocations_count + 1, sizeof *input->stacks);
    if (!input->stacks)
        return plan_fail_memory(error);
    for (size_t i = 0; i < trace->count; i++)
        if (trace->records[i].op == BFC_TRACE_STACK)
            take_stack(input, &trace->records[i]);
    return true;
}

static bool read_trace(struct input *input, struct file_text *text, const char *path,
                       struct plan_error *error) {
    struct trace trace;
    bool good = trace_parse(&trace, text, path, error);
    file_free(text);
    if (!good)
        return false;
    good = events_from_trace(&input->events, &trace, error);
    input->from_trace = true;
    input->cut_off = trace.cut_off;
    input->device_bytes = trace.header.version >= 4 ? trace.header.device_bytes : 0;
    input->settings = trace.settings;
    trace.settings = NULL;
    if (good && !take_stacks(input, &trace, path, error)) {
        input_free(input);
        good = false;
    }
    trace_free(&trace);
    return good;
}

static bool read_csv(struct input *input, struct file_text *text, const char *path,
                     struct plan_error *error) {
    if (!csv_parse(&input->lifetimes, text, path, error))
        return false;
    if (events_from_lifetimes(&input->events, &input->lifetimes, error))
        return true;
    lifetimes_free(&input->lifetimes);
    return false;
}

static bool count_devices(struct input *input, const char *path, struct plan_error *error) {
    for (uint32_t i = 0; i < input->events.allocations_count; i++) {
        const uint32_t device = input->events.allocations[i].device;
        if (device >= MOST_DEVICES)
            return plan_fail(error, "%s: device %u: devices from 0 to %d are accepted", path,
                             device, MOST_DEVICES - 1);
        if (device >= input->devices)
            input->devices = device + 1;
    }
    return true;
}

bool input_read(struct input *input, const char *path, struct plan_error *error) {
    struct file_text text;
    *input = (struct input){.devices = 1};
    if (!file_read(&text, path, error))
        return false;
    if (plan_looks_like(&text)) {
        file_free(&text);
        return plan_fail(error, "%s: header: a plan; a CSV of lifetimes or a trace is wanted here",
                         path);
    }
    if (!(trace_looks_like(&text) ? read_trace : read_csv)(input, &text, path, error))
        return false;
    if (count_devices(input, path, error))
        return true;
    input_free(input);
    return false;
}

void input_free(struct input *input) {
    events_free(&input->events);
    free(input->stacks);
    free(input->settings);
    bfc_who_free(&input->who);
    if (!input->from_trace)
        lifetimes_free(&input->lifetimes);
}

struct name input_name(const struct input *input, uint32_t allocation, char text[INPUT_NAME]) {
    const uint64_t serial = input->events.allocations[allocation].serial;
    if (!input->from_trace)
        return input->lifetimes.ids.list[serial];
    const int length = snprintf(text, INPUT_NAME, "%" PRIu64, serial);
    return (struct name){text, (size_t)length};
}

struct spilled input_spilled(const struct input *input) {
    const struct events *events = &input->events;
    struct spilled spilled = {0, 0};
    uint64_t live = 0;
    for (uint32_t i = 0; i < events->count; i++) {
        const struct allocation *a = &events->allocations[events->list[i].allocation];
        if (!a->spilled)
            continue;
        spilled.blocks += !events->list[i].is_free;
        live += events->list[i].is_free ? 0 - a->bytes : a->bytes;
        spilled.peak = live > spilled.peak ? live : spilled.peak;
    }
    return spilled;
}
