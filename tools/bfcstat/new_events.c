/* Which events are new. */
#include "tools/bfcstat/new_events.h"

/* Makes all events of the ring's last round new, as if only the round before it had been seen. A
 * slot that no event has come to yet waits for its first one. */
void new_events_begin(struct new_events *events, uint64_t next_event) {
    events->lost = 0;
    for (uint64_t slot = 0; slot < BFC_EVENTS; slot++) {
        uint64_t number =
            slot < next_event ? next_event - 1 - (next_event - 1 - slot) % BFC_EVENTS : slot;
        events->seen[slot] = number + 1 - BFC_EVENTS;
    }
}

/* Rounds of the ring that went by unseen in the event's slot are lost. */
bool new_events_take(struct new_events *events, const struct bfc_event *event) {
    uint64_t *seen = &events->seen[(event->stamp - 1) % BFC_EVENTS];
    if (*seen == event->stamp)
        return false;
    events->lost += (event->stamp - *seen) / BFC_EVENTS - 1;
    *seen = event->stamp;
    return true;
}
