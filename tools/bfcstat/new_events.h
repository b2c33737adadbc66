/*
 * Tells which events of a job are new in a copy of its shared-memory segment, compared with earlier
 * copies.
 *
 * The segment has a ring of events. A thread takes the numbers of its next events, and fills their
 * slots later. So an event can be new although events with higher numbers were seen before: each
 * slot is compared with the stamp (number) of the event that was last seen in that slot.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_BFCSTAT_NEW_EVENTS_H
#define BFC_TOOLS_BFCSTAT_NEW_EVENTS_H

#include "tools/job/reader.h"

struct new_events {
    /* for each slot of the ring: stamp of the last event that was taken from it */
    uint64_t seen[BFC_EVENTS];
    uint64_t lost; /* how many events, at most, were overwritten before they were seen */
};

/* Makes all events that the ring in the shared-memory segment holds now count as new. `next_event`
 * is the number of the next event, from the segment's header. */
void new_events_begin(struct new_events *events, uint64_t next_event);

/* Returns whether the event was not seen before, and marks it as seen. */
bool new_events_take(struct new_events *events, const struct bfc_event *event);

#endif
