/* Makes the sequence of allocations and frees of a trace, or of lifetimes. At equal times frees
 * come before allocations, because a buffer is not alive any more at the end of its lifetime. */
#ifndef BFC_PLAN_EVENTS_H
#define BFC_PLAN_EVENTS_H

#include "planner/model/lifetimes.h"
#include "planner/period/event_stream.h"
#include "tools/plan/trace/read_trace.h"

/* Makes the events of a trace, and counts its records as steps of the progress (watch.h). */
bool events_from_trace(struct events *events, const struct trace *trace, struct plan_error *error);
bool events_from_lifetimes(struct events *events, const struct lifetimes *lifetimes,
                           struct plan_error *error);

#endif
