#include "interpose/features/watch/watching.h"

#include "base/atomic.h"
#include "base/numbers.h"
#include "interpose/arena/arena.h"
#include "interpose/stats/published_segment.h"
#include "pool/pages.h"

/* Updates `largest`, the largest allocation of each section of the segment, by one event. A section
 * may have belonged to an earlier pool, whose allocations do not count. */
static void note_event(uint64_t *largest, uint64_t what, uint64_t bytes) {
    unsigned pool = bfc_event_pool(what);
    if (pool >= BFC_SEGMENT_POOLS)
        return;
    if (bfc_event_kind_of(what) == BFC_EVENT_BEGIN)
        largest[pool] = 0;
    else if (bfc_event_kind_of(what) == BFC_EVENT_ALLOCATE)
        largest[pool] = bfc_max(largest[pool], bytes);
}

/* Finds the largest allocation of each section among the events in the segment's ring. An event
 * whose stamp changes while it is read is skipped, since another thread overwrites it. */
static void read_events(uint64_t *largest, const struct bfc_segment_header *header) {
    const struct bfc_event *ring =
        (const struct bfc_event *)(const void *)((const char *)header + BFC_SEGMENT_EVENTS_OFFSET);
    uint64_t end = bfc_load_relaxed(&header->next_event);
    for (uint64_t number = end > BFC_EVENTS ? end - BFC_EVENTS : 0; number < end; number++) {
        const struct bfc_event *event = &ring[number % BFC_EVENTS];
        if (bfc_load_acquire(&event->stamp) != number + 1)
            continue;
        uint64_t what = bfc_load_relaxed(&event->what), bytes = bfc_load_relaxed(&event->bytes);
        bfc_barrier_acquire();
        if (bfc_load_relaxed(&event->stamp) == number + 1)
            note_event(largest, what, bytes);
    }
}

/* Returns how many ready bytes of the pool lie in blocks too small for the request. All ready pages
 * can be mapped next to each other, so together they serve any request that is no larger than their
 * sum. */
static uint64_t too_small_for(struct bfc_arena *arena, uint64_t request) {
    struct bfc_page_stats pages;
    struct bfc_pool_stats stats;
    uint64_t too_small = bfc_pool_ready_below(arena->pool, request);
    if (!bfc_pool_page_stats(arena->pool, &pages) || pages.ready < request)
        return too_small;
    bfc_pool_read_stats(arena->pool, &stats);
    return bfc_min(too_small, bfc_subtract_saturating(stats.ready, pages.ready));
}

void bfc_fragmentation_measure(void) {
    const struct bfc_segment_header *header = bfc_segment_published();
    uint64_t largest[BFC_SEGMENT_POOLS] = {0};
    struct bfc_arena *arena = NULL;
    if (!header)
        return;
    read_events(largest, header);
    while ((arena = bfc_arena_next(arena))) {
        struct bfc_segment_fit *fit = &arena->stats.section->fit;
        uint64_t request = largest[arena->stats.section_index % BFC_SEGMENT_POOLS];
        if (!request)
            request = bfc_load_relaxed(&fit->request);
        if (!arena->stats.segment || !request)
            continue;
        bfc_store_relaxed(&fit->too_small, too_small_for(arena, request));
        bfc_store_relaxed(&fit->request, request);
    }
}
