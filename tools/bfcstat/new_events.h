/*
 * Finds the events of a job that were not seen before, from one copy of its segment to the next. A
 * thread draws slots and fills them later, so each slot is compared with the stamp that was last
 * seen in it.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_BFCSTAT_NEW_EVENTS_H
#define BFC_TOOLS_BFCSTAT_NEW_EVENTS_H

#include "tools/job/reader.h"

struct new_events {
    uint64_t seen[BFC_EVENTS]; /* for each slot: stamp of the last event */
    uint64_t lost;             /* how many events were overwritten before they were seen, at most */
};

/* From now on all events that the ring holds count as new. `next_event` is that of the segment's
 * header. */
void new_events_begin(struct new_events *events, uint64_t next_event);

/* Returns whether the event is new, and marks it as seen. */
bool new_events_take(struct new_events *events, const struct bfc_event *event);

#endif
