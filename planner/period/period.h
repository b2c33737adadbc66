/*
 * Finds the repeating part of an allocation stream: training and inference loops allocate the same
 * sizes in the same order in every iteration.
 *
 * Each event becomes a token: an allocation by device, thread and size, a free by the age of its
 * block, counted in allocations; never by addresses. The prefix function (Knuth, Morris, Pratt
 * 1977) of the reversed tokens gives the least period of every suffix at once; the longest suffix
 * that repeats at least three times wins. A job's end disturbs that, so tails of growing length are
 * left out in turn: O(n log n).
 *
 * When sizes vary, the exact tokens find nothing. The search is then repeated without sizes, and
 * each slot of the period is planned for its largest size; or, if that raises the most live bytes
 * of an average repetition by more than PERIOD_LITTLE_GROWTH, for the size that more than half of
 * the repetitions have. If they rise by more than PERIOD_MOST_GROWTH, no period is reported.
 */
#ifndef BFC_PLAN_PERIOD_H
#define BFC_PLAN_PERIOD_H

#include "planner/common/error.h"
#include "planner/period/event_stream.h"

#define PERIOD_LITTLE_GROWTH 1.02
#define PERIOD_MOST_GROWTH 1.25

struct period {
    uint32_t prefix; /* allocations before the first repetition */
    uint32_t length; /* allocations of one repetition; 0: the stream has no period */
    uint32_t repetitions;
    uint32_t prefix_events; /* events before the first repetition */
    uint32_t length_events; /* events of one repetition */
    bool jitter;            /* sizes differ between repetitions */
    bool usual;    /* a slot is planned for the size that most repetitions have, where there is one,
                      else for its largest */
    bool alone;    /* allocations before the first repetition are not planned */
    double growth; /* most live bytes with the planned sizes ÷ those of an average repetition */
};

/* Finds the period of a stream. For a stream without a period it succeeds with the length 0.
 * False: the host has no memory. */
bool period_find(struct period *period, const struct events *events, struct plan_error *error);

/* How many steps of watch.h period_find takes, at most. */
uint64_t period_steps(const struct events *events);

/*
 * Finds the period at the end of a stream that still goes on. O(n). If sizes vary, the repetitions
 * must be at least half of the stream, and the last one must still have the usual sizes. A
 * repetition must free about as many blocks as it allocates (balance.h), else it is a part of a
 * longer one. The first repetition is then moved on to the allocation before which the fewest bytes
 * live; at least two repetitions are left.
 */
bool period_find_current(struct period *period, const struct events *events,
                         struct plan_error *error);

/* The bytes with which slot number `slot` (from 0) of the period is planned. */
uint64_t period_slot_bytes(const struct period *period, const struct events *events, uint32_t slot);

#endif
