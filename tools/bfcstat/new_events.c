#include "tools/bfcstat/new_events.h"

/* Makes all events that are in the ring now count as new. A slot of the ring holds every 4,096th
 * event. So stores for each slot that the event before its present one is the last that was seen.
 */
void new_events_begin(struct new_events *events, uint64_t next_event) {
    events->lost = 0;
    for (uint64_t slot = 0; slot < BFC_EVENTS; slot++) {
        uint64_t number =
            slot < next_event ? next_event - 1 - (next_event - 1 - slot) % BFC_EVENTS : slot;
        events->seen[slot] = number + 1 - BFC_EVENTS;
    }
}

/* Each slot of the ring holds every 4,096th event. If the event in a slot is new, the slot's events
 * between it and the last one that was seen were overwritten, and are counted as lost. */
bool new_events_take(struct new_events *events, const struct bfc_event *event) {
    uint64_t *seen = &events->seen[(event->stamp - 1) % BFC_EVENTS];
    if (*seen == event->stamp)
        return false;
    events->lost += (event->stamp - *seen) / BFC_EVENTS - 1;
    *seen = event->stamp;
    return true;
}
