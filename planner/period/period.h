/*
 * Finds the loop in the allocations and frees of a program. Training and inference loops allocate
 * the same sizes in the same order in every repetition.
 *
 * Each event becomes a number, its token: an allocation by its device, thread and size, a free by
 * how many allocations were made since the one of the freed block. Addresses do not count. The
 * prefix function (Knuth, Morris, Pratt 1977) of the reversed tokens gives the shortest period of
 * every suffix at once. The longest suffix that repeats at least three times is taken. As the end
 * of a program does not belong to its loop, the search is repeated without the last 1, 2, 4, …
 * events. O(n log n).
 *
 * If nothing is found because sizes vary, the search is repeated with tokens without sizes. The
 * plan then has for each allocation the largest size that it has in any repetition. If the most
 * live bytes are thereby more than PERIOD_LITTLE_GROWTH times those of an average repetition, the
 * plan has for each allocation the size that more than half of the repetitions have instead. If the
 * most live bytes are even then more than PERIOD_MOST_GROWTH times those of an average repetition,
 * no loop is reported.
 */
#ifndef BFC_PLAN_PERIOD_H
#define BFC_PLAN_PERIOD_H

#include "planner/common/error.h"
#include "planner/period/event_stream.h"

#define PERIOD_LITTLE_GROWTH 1.02
#define PERIOD_MOST_GROWTH 1.25

struct period {
    uint32_t prefix; /* number of allocations before the first repetition */
    uint32_t length; /* number of allocations in one repetition; 0: the stream has no loop */
    uint32_t repetitions;
    uint32_t prefix_events; /* number of events before the first repetition */
    uint32_t length_events; /* number of events in one repetition */
    bool jitter;            /* whether sizes differ between repetitions */
    /* if `jitter`: whether an allocation is planned for the size that more than half of the
     * repetitions have (if there is none, for the largest), not always for the largest */
    bool usual;
    /* set by a caller that plans the loop alone, without the allocations before the first
     * repetition */
    bool alone;
    /* the most live bytes of a repetition with the planned sizes, divided by those of an average
     * repetition with its own sizes */
    double growth;
};

/* Finds the loop in a stream that has ended. If there is none, it succeeds with `length` 0. False:
 * the host has no memory. */
bool period_find(struct period *period, const struct events *events, struct plan_error *error);

/* Returns how many steps of progress (watch.h) period_find counts at most. */
uint64_t period_steps(const struct events *events);

/*
 * Finds the loop at the end of a stream that still goes on. O(n).
 *
 * If sizes vary, the repetitions must be at least half of the stream. If the plan has the usual
 * sizes (period.usual), the last repetition must still have at least half of them. The repetitions
 * must free about as many blocks as they allocate (balance.h), else each is only a part of a longer
 * loop's repetition. At last the beginning of the repetitions is moved to a later allocation, the
 * one in the first repetition at which the fewest bytes are live; at least two repetitions remain
 * after it. If there is no loop, it succeeds with `length` 0. False: the host has no memory.
 */
bool period_find_current(struct period *period, const struct events *events,
                         struct plan_error *error);

/* Returns for how many bytes allocation number `slot` (from 0) of a repetition is planned. */
uint64_t period_slot_bytes(const struct period *period, const struct events *events, uint32_t slot);

#endif
