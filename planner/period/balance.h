/*
 * Tells a loop from a part of one that repeats as well, as the layers of a model do. A whole loop
 * frees what it allocates; but the memory in use rises with each layer of a forward pass, and falls
 * with each layer of a backward pass.
 */
#ifndef BFC_PLAN_BALANCE_H
#define BFC_PLAN_BALANCE_H

#include "planner/period/event_stream.h"

/*
 * `ends`: indexes, strictly rising, of the events before which repetitions end; the last one may be
 * the number of events. True if the numbers of live blocks at the ends differ by at most half of
 * what one repetition allocates, and if there are fewer than two ends. Blocks are counted, not
 * bytes, since a few sizes that change may be most of the bytes. O(events). Thread-safe.
 */
bool is_balanced(const struct events *events, const uint32_t *ends, uint32_t count);

#endif
