/*
 * Distinguishes a whole loop from a part of it that is itself repeated, as the layers of a model
 * are. A repetition of a whole loop frees what it allocates, so equally many blocks are live after
 * each. But a layer of a forward pass leaves blocks for the backward pass, so the number of live
 * blocks rises with each layer.
 */
#ifndef BFC_PLAN_BALANCE_H
#define BFC_PLAN_BALANCE_H

#include "planner/period/event_stream.h"

/*
 * Returns whether the repetitions free about as many blocks as they allocate: the numbers of live
 * blocks at their ends differ by at most half of what one repetition allocates.
 *
 * `ends` has for each repetition the index of the first event after its end, in rising order; the
 * last index may be the number of events. With fewer than two ends the result is true. Blocks are
 * counted, not bytes, because a few blocks of changing sizes may have most of the bytes. O(events).
 * Thread-safe.
 */
bool is_balanced(const struct events *events, const uint32_t *ends, uint32_t count);

#endif
