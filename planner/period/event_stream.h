/* The allocations and frees of a program in the order in which they were made. */
#ifndef BFC_PLAN_STREAM_H
#define BFC_PLAN_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#define NEVER UINT32_MAX
#define MOST_EVENTS ((uint32_t)1 << 29)

struct event {
    /* index in events.allocations of the allocation that the event makes or frees */
    uint32_t allocation;
    bool is_free;
};

struct allocation {
    uint64_t bytes;
    /* identifies the allocation: its number in the trace, the index of its row in the lifetimes, or
     * the id of its block in the pool */
    uint64_t serial;
    uint32_t birth; /* index of the event of the allocation */
    uint32_t death; /* index of the event of the free; NEVER: the stream has none */
    uint32_t thread;
    uint32_t stream;
    uint32_t device;
    /* whether the recorded job got host memory for the allocation, because the device was full */
    bool spilled;
};

/* An allocation that failed in the recorded program. */
struct refusal {
    uint64_t bytes;
    uint32_t event; /* index of the first event after the failed allocation */
    uint32_t device;
};

struct events {
    struct event *list;
    struct allocation *allocations; /* the allocations in the order in which they were made */
    struct refusal *refusals;
    uint32_t refusals_count;
    uint32_t count;
    uint32_t allocations_count;
    uint32_t
        /* how many frees are left out, because the stream does not have their allocations */
        unknown_frees;
};

void events_free(struct events *events);

/* events_add_allocation appends an allocation and its event; events_add_free appends the event of a
 * free. The arrays must have room for them. */
void events_add_allocation(struct events *events, struct allocation allocation);
void events_add_free(struct events *events, uint32_t allocation);

/* Returns the index of the allocation with this serial; NEVER: there is none. The serials of the
 * stream must rise. */
uint32_t events_find(const struct events *events, uint64_t serial);

#endif
