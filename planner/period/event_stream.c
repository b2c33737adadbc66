#include "planner/period/event_stream.h"

#include <stdlib.h>

void events_free(struct events *events) {
    free(events->list);
    free(events->allocations);
    free(events->refusals);
    *events = (struct events){0};
}

void events_add_allocation(struct events *events, struct allocation allocation) {
    allocation.birth = events->count;
    allocation.death = NEVER;
    events->list[events->count++] = (struct event){events->allocations_count, false};
    events->allocations[events->allocations_count++] = allocation;
}

void events_add_free(struct events *events, uint32_t allocation) {
    events->allocations[allocation].death = events->count;
    events->list[events->count++] = (struct event){allocation, true};
}

uint32_t events_find(const struct events *events, uint64_t serial) {
    uint32_t low = 0, high = events->allocations_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (events->allocations[middle].serial < serial)
            low = middle + 1;
        else
            high = middle;
    }
    const bool there = low < events->allocations_count && events->allocations[low].serial == serial;
    return there ? low : NEVER;
}
