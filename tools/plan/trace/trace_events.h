/* Streams of events from a trace or from lifetimes. At equal times frees come before allocations,
 * since lifetimes are half-open. */
#ifndef BFC_PLAN_EVENTS_H
#define BFC_PLAN_EVENTS_H

#include "planner/model/lifetimes.h"
#include "planner/period/event_stream.h"
#include "tools/plan/trace/read_trace.h"

/* Counts the records as steps (watch.h). */
bool events_from_trace(struct events *events, const struct trace *trace, struct plan_error *error);
bool events_from_lifetimes(struct events *events, const struct lifetimes *lifetimes,
                           struct plan_error *error);

#endif
