/* Reads the file of lifetimes that a user names: a CSV, or a trace that a job recorded. Its first
 * bytes show which it is. */
#ifndef BFC_PLAN_SOURCE_H
#define BFC_PLAN_SOURCE_H

#include "planner/common/text.h"
#include "planner/model/lifetimes.h"
#include "planner/period/period.h"

struct source_about {
    bool from_trace;
    bool cut_off; /* whether the end of the trace is missing */
    /* number of frees that were left out, because the trace does not have their allocations */
    uint32_t unknown_frees;
    struct period period; /* the part of the trace that repeats */
};

/*
 * Reads lifetimes. Of a trace, the part that repeats (the period) is kept once. The streams in a
 * trace are ignored unless `trace_streams` is set. `about` is filled in; it may be NULL.
 */
bool source_read(struct lifetimes *lifetimes, const char *path, bool trace_streams,
                 struct source_about *about, struct plan_error *error);

/* Reads lifetimes as source_read does, but from `text`, which the caller has read from the file at
 * `path`. `text` is freed or kept in `lifetimes`, also on failure. */
bool source_take(struct lifetimes *lifetimes, struct file_text *text, const char *path,
                 bool trace_streams, struct source_about *about, struct plan_error *error);

/* Reads the sequence of allocations and frees in a trace or a CSV, the whole of it. */
bool source_read_events(struct events *events, const char *path, struct source_about *about,
                        struct plan_error *error);

#endif
