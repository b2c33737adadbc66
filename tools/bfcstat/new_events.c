#include "tools/bfcstat/new_events.h"

/* Sets the stamp of each slot to the one that the slot had a round of the ring before its last
 * event, so that this event counts as new. */
void new_events_begin(struct new_events *events, uint64_t next_event) {
    events->lost = 0;
    for (uint64_t slot = 0; slot < BFC_EVENTS; slot++) {
        uint64_t number =
            slot < next_event ? next_event - 1 - (next_event - 1 - slot) % BFC_EVENTS : slot;
        events->seen[slot] = number + 1 - BFC_EVENTS;
    }
}

/* Counts the events that were in the same slot and were overwritten unseen, one for each round of
 * the ring, as lost. */
bool new_events_take(struct new_events *events, const struct bfc_event *event) {
    uint64_t *seen = &events->seen[(event->stamp - 1) % BFC_EVENTS];
    if (*seen == event->stamp)
        return false;
    events->lost += (event->stamp - *seen) / BFC_EVENTS - 1;
    *seen = event->stamp;
    return true;
}
