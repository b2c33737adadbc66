/* Reads a file that a user names. The file's first bytes show whether it is a CSV of lifetimes or a
 * recorded trace. */
#ifndef BFC_PLAN_SOURCE_H
#define BFC_PLAN_SOURCE_H

#include "planner/common/text.h"
#include "planner/model/lifetimes.h"
#include "planner/period/period.h"

struct source_about {
    bool from_trace;
    bool cut_off;           /* whether the end of the trace is missing */
    uint32_t unknown_frees; /* frees that were left out, since their allocations are not known */
    struct period period;   /* the trace's period */
};

/*
 * Reads lifetimes. A trace is folded to one period, and its streams are ignored without
 * `trace_streams`. `about` may be NULL.
 */
bool source_read(struct lifetimes *lifetimes, const char *path, bool trace_streams,
                 struct source_about *about, struct plan_error *error);

/* Reads lifetimes as source_read does, but from `text`, which the caller has read from `path`.
 * Takes over `text`, also on failure. */
bool source_take(struct lifetimes *lifetimes, struct file_text *text, const char *path,
                 bool trace_streams, struct source_about *about, struct plan_error *error);

/* Reads a stream of events. */
bool source_read_events(struct events *events, const char *path, struct source_about *about,
                        struct plan_error *error);

#endif
