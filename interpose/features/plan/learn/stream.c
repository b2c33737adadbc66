#include "interpose/features/plan/learn/stream.h"

#include <stdlib.h>

#include "layout/plan.h"

static void add_free(struct events *events, uint64_t id) {
    uint32_t allocation = events_find(events, id);
    if (allocation != NEVER)
        events_add_free(events, allocation);
}

/* Threads as they come, from 1 on; of very many the rest are one. */
enum { MOST_THREADS = 64 };

struct threads {
    uint64_t marks[MOST_THREADS];
    uint32_t count;
};

static uint32_t number_of(struct threads *threads, uint64_t mark) {
    uint32_t i = 0;
    while (i < threads->count && threads->marks[i] != mark)
        i++;
    if (i == threads->count && i < MOST_THREADS)
        threads->marks[threads->count++] = mark;
    return i + 1;
}

static void add_note(struct events *events, const struct bfc_pool_note *note, uint32_t device,
                     struct threads *threads) {
    if (note->bytes)
        events_add_allocation(events,
                              (struct allocation){.bytes = bfc_plan_round(note->bytes),
                                                  .serial = note->id,
                                                  .thread = number_of(threads, note->thread),
                                                  .device = device});
    else
        add_free(events, note->id);
}

bool bfc_stream_make(struct events *events, const struct bfc_pool_note *notes, uint64_t count,
                     uint32_t device) {
    struct threads threads = {.count = 0};
    uint64_t allocations = 0;
    for (uint64_t i = 0; i < count; i++)
        allocations += notes[i].bytes != 0;
    *events = (struct events){
        .list = malloc((count + 1) * sizeof *events->list),
        .allocations = malloc((allocations + 1) * sizeof *events->allocations),
    };
    if (!events->list || !events->allocations) {
        events_free(events);
        return false;
    }
    for (uint64_t i = 0; i < count; i++)
        add_note(events, &notes[i], device, &threads);
    return true;
}
