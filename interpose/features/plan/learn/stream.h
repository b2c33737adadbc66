/* From a pool's notes to a stream of events, as the planner reads it. */
#ifndef BFC_INTERPOSE_STREAM_H
#define BFC_INTERPOSE_STREAM_H

#include "planner/period/event_stream.h"
#include "pool/pool.h"

/*
 * Of the notes in order; frees of blocks that they do not have are left out. Sizes are those of the
 * blocks that the pool hands out (bfc_plan_round). Free with events_free. False: no host memory.
 * O(count log count).
 */
bool bfc_stream_make(struct events *events, const struct bfc_pool_note *notes, uint64_t count,
                     uint32_t device);

#endif
