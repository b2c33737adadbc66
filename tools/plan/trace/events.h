/*
 * A stream of allocations and frees in the order in which they came, from a trace or from lifetimes
 * (at equal times frees come first, as they would have to).
 */
#ifndef BFC_PLAN_EVENTS_H
#define BFC_PLAN_EVENTS_H

#include "tools/plan/model/lifetimes.h"
#include "tools/plan/trace/trace.h"

#define NEVER UINT32_MAX
#define MOST_EVENTS ((uint32_t)1 << 29)

struct event {
    uint32_t allocation; /* index */
    bool is_free;
};

struct allocation {
    uint64_t bytes;
    uint64_t serial; /* of the trace; of lifetimes: the row */
    uint32_t birth;  /* event */
    uint32_t death;  /* event, or NEVER */
    uint32_t thread;
    uint32_t stream;
    uint32_t device;
    bool spilled; /* it was host memory when it was recorded */
};

/* An allocation that failed when the trace was recorded. */
struct refusal {
    uint64_t bytes;
    uint32_t event; /* the one that came next */
    uint32_t device;
};

struct events {
    struct event *list;
    struct allocation *allocations; /* in order of birth */
    struct refusal *refusals;
    uint32_t refusals_count;
    uint32_t count;
    uint32_t allocations_count;
    uint32_t unknown_frees; /* of allocations that the trace does not have: left out */
};

bool events_from_trace(struct events *events, const struct trace *trace, struct plan_error *error);
bool events_from_lifetimes(struct events *events, const struct lifetimes *lifetimes,
                           struct plan_error *error);
void events_free(struct events *events);

#endif
