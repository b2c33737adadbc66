#include "tools/plan/trace/trace_events.h"

#include <inttypes.h>
#include <stdlib.h>

#include "planner/common/sort.h"
#include "planner/common/watch.h"

#define RECORDS_PER_WATCH 65536

static bool make_room(struct events *events, size_t most, size_t allocations) {
    events->list = malloc((most + 1) * sizeof *events->list);
    events->allocations = malloc((allocations + 1) * sizeof *events->allocations);
    return events->list && events->allocations;
}

static bool collect_refusals(struct events *events, const struct trace *trace) {
    size_t count = 0;
    for (size_t i = 0; i < trace->count; i++)
        count += trace->records[i].op == BFC_TRACE_OUT_OF_MEMORY;
    events->refusals = malloc((count + 1) * sizeof *events->refusals);
    return events->refusals;
}

/* The allocations of a trace, sorted by serial number. `index` is at first the position of the
 * allocation's record in the trace. Once add_record has added the allocation to the events, it is
 * the position in events->allocations. */
struct serials {
    struct keyed *list;
    uint32_t count;
};

static bool collect_serials(struct serials *serials, const struct trace *trace,
                            struct plan_error *error) {
    size_t count = 0;
    for (size_t i = 0; i < trace->count; i++)
        count += trace->records[i].op == BFC_TRACE_ALLOCATE;
    if (trace->count > MOST_EVENTS || count > MOST_ROWS)
        return plan_fail(error, "%s: %zu records, at most %u are accepted", trace->path,
                         trace->count, MOST_EVENTS);
    serials->list = malloc((count + 1) * sizeof *serials->list);
    if (!serials->list)
        return plan_fail_memory(error);
    for (size_t i = 0; i < trace->count; i++)
        if (trace->records[i].op == BFC_TRACE_ALLOCATE)
            serials->list[serials->count++] = (struct keyed){trace->records[i].serial, (uint32_t)i};
    if (!sort_keyed(serials->list, serials->count))
        return plan_fail_memory(error);
    for (uint32_t i = 1; i < serials->count; i++)
        if (serials->list[i].key == serials->list[i - 1].key)
            return plan_fail(error, "%s: record %u: allocation %" PRIu64 " was recorded before",
                             trace->path, serials->list[i].index, serials->list[i].key);
    return true;
}

static struct keyed *find_serial(const struct serials *serials, uint64_t serial) {
    uint32_t lo = 0, hi = serials->count;
    while (lo < hi) {
        const uint32_t middle = lo + (hi - lo) / 2;
        if (serials->list[middle].key < serial)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo < serials->count && serials->list[lo].key == serial ? &serials->list[lo] : NULL;
}

static bool add_record(struct events *events, const struct trace *trace, size_t index,
                       struct serials *serials, struct plan_error *error) {
    const struct bfc_trace_record *record = &trace->records[index];
    struct keyed *known = find_serial(serials, record->serial);
    if (record->op == BFC_TRACE_ALLOCATE) {
        if (record->bytes > (uint64_t)1 << 63)
            return plan_fail(error, "%s: record %zu: size %" PRIu64 " is above 2^63", trace->path,
                             index, record->bytes);
        known->index = events->allocations_count;
        events_add_allocation(
            events, (struct allocation){.bytes = record->bytes,
                                        .serial = record->serial,
                                        .thread = record->thread,
                                        .stream = record->stream,
                                        .device = record->device,
                                        .spilled = record->memory == BFC_TRACE_HOST_MEMORY});
        return true;
    }
    if (record->op == BFC_TRACE_OUT_OF_MEMORY)
        events->refusals[events->refusals_count++] =
            (struct refusal){record->bytes, events->count, record->device};
    if (record->op != BFC_TRACE_FREE)
        return true;
    if (!known) {
        events->unknown_frees++;
        return true;
    }
    const bool born = known->index < events->allocations_count &&
                      events->allocations[known->index].serial == record->serial;
    if (!born || events->allocations[known->index].death != NEVER)
        return plan_fail(error, "%s: record %zu: allocation %" PRIu64 " is freed %s", trace->path,
                         index, record->serial, born ? "a second time" : "before it is made");
    events_add_free(events, known->index);
    return true;
}

bool events_from_trace(struct events *events, const struct trace *trace, struct plan_error *error) {
    struct serials serials = {NULL, 0};
    *events = (struct events){0};
    bool good = collect_serials(&serials, trace, error);
    if (good &&
        !(make_room(events, trace->count, serials.count) && collect_refusals(events, trace)))
        good = plan_fail_memory(error);
    for (size_t i = 0; good && i < trace->count; i++) {
        good = add_record(events, trace, i, &serials, error);
        if (i % RECORDS_PER_WATCH == 0)
            watch_add(RECORDS_PER_WATCH);
    }
    free(serials.list);
    if (!good)
        events_free(events);
    return good;
}

static void add_row(struct events *events, const struct lifetimes *lifetimes, uint32_t row,
                    uint32_t *allocation_of) {
    const struct lifetime *r = &lifetimes->rows[row];
    allocation_of[row] = events->allocations_count;
    events_add_allocation(events,
                          (struct allocation){.bytes = r->size,
                                              .serial = row,
                                              .thread = r->thread,
                                              .stream = r->stream == ROW_NONE ? 0 : r->stream,
                                              .device = r->space});
}

bool events_from_lifetimes(struct events *events, const struct lifetimes *lifetimes,
                           struct plan_error *error) {
    const uint32_t n = lifetimes->count;
    struct keyed *births = malloc(((size_t)n + 1) * sizeof *births);
    struct keyed *deaths = malloc(((size_t)n + 1) * sizeof *deaths);
    uint32_t *allocation_of = malloc(((size_t)n + 1) * sizeof *allocation_of);
    *events = (struct events){0};
    bool good = births && deaths && allocation_of && make_room(events, 2 * (size_t)n, n);
    for (uint32_t i = 0; good && i < n; i++) {
        births[i] = (struct keyed){lifetimes->rows[i].birth, i};
        /* The first sort of this list is by birth, so that buffers with equal deaths stay in the
         * order of their births in the second sort, which is by death. */
        deaths[i] = (struct keyed){lifetimes->rows[i].birth, i};
    }
    good = good && sort_keyed(births, n) && sort_keyed(deaths, n);
    for (uint32_t i = 0; good && i < n; i++)
        deaths[i].key = lifetimes->rows[deaths[i].index].death;
    good = good && sort_keyed(deaths, n);
    uint32_t dead = 0;
    for (uint32_t i = 0; good && i < n; i++) {
        for (; deaths[dead].key <= births[i].key; dead++)
            events_add_free(events, allocation_of[deaths[dead].index]);
        add_row(events, lifetimes, births[i].index, allocation_of);
    }
    for (; good && dead < n; dead++)
        events_add_free(events, allocation_of[deaths[dead].index]);
    free(births);
    free(deaths);
    free(allocation_of);
    if (good)
        return true;
    events_free(events);
    return plan_fail_memory(error);
}
