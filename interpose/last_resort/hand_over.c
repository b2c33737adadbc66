/* Handing over what an earlier allocation in another job waits for. */
#include "interpose/last_resort/hand_over.h"

#include "base/numbers.h"
#include "interpose/arena/arena.h"
#include "interpose/config/process.h"
#include "interpose/context/capture.h"
#include "interpose/host/background.h"
#include "interpose/last_resort/rounding.h"
#include "interpose/reuse/give_back.h"
#include "segment/figures.h"
#include "segment/queue.h"

static uint64_t cached_on(CUdevice device) {
    struct bfc_arena *arena = NULL;
    struct bfc_pool_stats stats;
    uint64_t cached = 0;
    while ((arena = bfc_arena_next_on(device, arena))) {
        bfc_pool_read_stats(arena->pool, &stats);
        cached += bfc_pool_cached(&stats);
    }
    return cached;
}

/* As the driver counts. */
static bool has_cached(CUdevice device, uint64_t bytes) {
    uint64_t cached = cached_on(device);
    return bytes <= cached ||
           (bytes / 2 <= cached && bytes <= bfc_add_saturating(cached, bfc_rounded_up_on(device)));
}

/* Whether it is this arena's device that somebody waits for, and all is done about it. */
static bool hand_over_on(const struct bfc_arena *arena) {
    struct bfc_segment_header *published = arena->stats.segment;
    if (bfc_arena_is_host(arena) || !published)
        return false;
    struct bfc_awaited awaited = bfc_waiters_want(published, arena->stats.section->device_uuid);
    if (!awaited.bytes)
        return false;
    if (awaited.from_here && has_cached(arena->device, awaited.from_here)) {
        bfc_waiters_note_given(published);
        bfc_give_back_as_free(arena->device, awaited.from_here);
    }
    return true;
}

void bfc_hand_over(void) {
    const struct bfc_process *process = bfc_process_if_made();
    struct bfc_arena *arena = NULL;
    if (!process || process->options.wait <= 0 || !process->options.yield || bfc_captures_exist() ||
        bfc_background_is_over())
        return;
    while ((arena = bfc_arena_next(arena)) && !hand_over_on(arena))
        ;
    bfc_arena_drop(arena);
}
