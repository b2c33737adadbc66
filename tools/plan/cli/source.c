#include "tools/plan/cli/source.h"

#include "layout/plan.h"
#include "planner/common/watch.h"
#include "planner/period/fold.h"
#include "tools/plan/io/csv.h"
#include "tools/plan/io/plan_file.h"
#include "tools/plan/trace/trace_events.h"

/* Roughly what percentage of the time of reading a trace has passed when the trace is unpacked, and
 * when its events are known. The rest of the time goes to finding the period. */
enum { UNPACK_PERCENT = 35, EVENTS_PERCENT = 55 };

static bool refuse_plan(const struct file_text *text, const char *path, struct plan_error *error) {
    if (plan_looks_like(text))
        return plan_fail(
            error, "%s: header: this is a plan; expected a CSV of lifetimes or a trace", path);
    return true;
}

static bool any_two_streams(const struct lifetimes *lifetimes) {
    for (uint32_t i = 1; i < lifetimes->count; i++)
        if (lifetimes->rows[i].stream != lifetimes->rows[0].stream)
            return true;
    return false;
}

static uint64_t program_of(const struct trace *trace) {
    const struct bfc_trace_header *header = &trace->header;
    return bfc_plan_program(header->executable_hash, header->argument_hash);
}

static bool unpack_trace(struct trace *trace, struct file_text *text, const char *path,
                         struct plan_error *error) {
    watch_begin(0);
    watch_part(UNPACK_PERCENT, text->size);
    return trace_parse(trace, text, path, error);
}

static bool find_events(struct events *events, const struct trace *trace,
                        struct source_about *about, struct plan_error *error) {
    watch_part(EVENTS_PERCENT, trace->count);
    if (!events_from_trace(events, trace, error))
        return false;
    about->from_trace = true;
    about->cut_off = trace->cut_off;
    about->unknown_frees = events->unknown_frees;
    return true;
}

static bool fold_trace(struct lifetimes *lifetimes, const struct trace *trace,
                       struct source_about *about, struct plan_error *error) {
    struct events events;
    if (!find_events(&events, trace, about, error))
        return false;
    watch_part(100, period_steps(&events));
    const bool good =
        period_find(&about->period, &events, error) &&
        fold(lifetimes, &events, &about->period, trace->path, program_of(trace), error);
    events_free(&events);
    return good;
}

bool source_take(struct lifetimes *lifetimes, struct file_text *text, const char *path,
                 bool trace_streams, struct source_about *about, struct plan_error *error) {
    struct source_about unwanted;
    struct trace trace;
    if (!about)
        about = &unwanted;
    *about = (struct source_about){0};
    bool good = refuse_plan(text, path, error);
    if (good && !trace_looks_like(text))
        return csv_parse(lifetimes, text, path, error);
    good = good && unpack_trace(&trace, text, path, error);
    file_free(text);
    if (!good)
        return false;
    good = fold_trace(lifetimes, &trace, about, error);
    if (good)
        lifetimes->has_stream = trace_streams && any_two_streams(lifetimes);
    trace_free(&trace);
    return good;
}

bool source_read(struct lifetimes *lifetimes, const char *path, bool trace_streams,
                 struct source_about *about, struct plan_error *error) {
    struct file_text text;
    return file_read(&text, path, error) &&
           source_take(lifetimes, &text, path, trace_streams, about, error);
}

static bool read_row_events(struct events *events, struct file_text *text, const char *path,
                            struct plan_error *error) {
    struct lifetimes lifetimes;
    if (!csv_parse(&lifetimes, text, path, error))
        return false;
    const bool good = events_from_lifetimes(events, &lifetimes, error);
    lifetimes_free(&lifetimes);
    return good;
}

bool source_read_events(struct events *events, const char *path, struct source_about *about,
                        struct plan_error *error) {
    struct file_text text;
    struct trace trace;
    *about = (struct source_about){0};
    if (!file_read(&text, path, error))
        return false;
    bool good = refuse_plan(&text, path, error);
    if (good && !trace_looks_like(&text))
        return read_row_events(events, &text, path, error);
    good = good && unpack_trace(&trace, &text, path, error);
    file_free(&text);
    if (!good)
        return false;
    good = find_events(events, &trace, about, error);
    trace_free(&trace);
    return good;
}
