/*
 * Whether what repeats frees what it allocates. Part of a loop often repeats too, as the layers of
 * a model do; but on the way forward what is in use rises by as much each time, and on the way back
 * it falls.
 */
#ifndef BFC_PLAN_BALANCE_H
#define BFC_PLAN_BALANCE_H

#include "planner/period/event_stream.h"

/*
 * `ends`: the events, strictly rising, before which repetitions end; the stream's last one may end
 * with it. True if as many blocks live at each, but for half of what one repetition allocates; and
 * if there are fewer than two. In blocks, since a few sizes that change may be most of the bytes.
 * O(events). Thread-safe.
 */
bool is_balanced(const struct events *events, const uint32_t *ends, uint32_t count);

#endif
