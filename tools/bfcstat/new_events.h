/*
 * Events of a job that were not seen before, from one copy of its segment to the next. A thread
 * fills the slots that it has drawn when it comes to it, so each slot is compared with what was
 * last seen there. Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_BFCSTAT_NEW_EVENTS_H
#define BFC_TOOLS_BFCSTAT_NEW_EVENTS_H

#include "tools/job/reader.h"

struct new_events {
    uint64_t seen[BFC_EVENTS]; /* by slot: the stamp of the last event */
    uint64_t lost;             /* overwritten before they were seen, at most */
};

/* What the ring holds now is new. `next_event`: of the segment's header. */
void new_events_begin(struct new_events *events, uint64_t next_event);

/* Whether the event is new; it is not from then on. */
bool new_events_take(struct new_events *events, const struct bfc_event *event);

#endif
