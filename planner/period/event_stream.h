/* A stream of allocations and frees in the order in which they came. */
#ifndef BFC_PLAN_STREAM_H
#define BFC_PLAN_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#define NEVER UINT32_MAX
#define MOST_EVENTS ((uint32_t)1 << 29)

struct event {
    uint32_t allocation; /* index of the allocation in events.allocations */
    bool is_free;
};

struct allocation {
    uint64_t bytes;
    uint64_t serial; /* the allocation's number in the trace, or its row in lifetimes */
    uint32_t birth;  /* index of the event that allocates */
    uint32_t death;  /* index of the event that frees, or NEVER */
    uint32_t thread;
    uint32_t stream;
    uint32_t device;
    bool spilled; /* the recorded job got host memory for it */
};

/* An allocation that failed when the trace was recorded. */
struct refusal {
    uint64_t bytes;
    uint32_t event; /* index of the event that came next */
    uint32_t device;
};

struct events {
    struct event *list;
    struct allocation *allocations; /* the allocations, in order of birth */
    struct refusal *refusals;
    uint32_t refusals_count;
    uint32_t count;
    uint32_t allocations_count;
    uint32_t
        unknown_frees; /* how many frees were left out, since their allocations are not known */
};

void events_free(struct events *events);

/* events_add_allocation and events_add_free append to the lists, which must have room. */
void events_add_allocation(struct events *events, struct allocation allocation);
void events_add_free(struct events *events, uint32_t allocation);

/* Returns the index of the allocation with this serial; NEVER: there is none. Serials must rise. */
uint32_t events_find(const struct events *events, uint64_t serial);

#endif
