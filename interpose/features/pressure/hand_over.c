/* Handing over what an earlier allocation in another job waits for. */
#include "interpose/features/pressure/hand_over.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/numbers.h"
#include "interpose/arena/arena.h"
#include "interpose/config/process.h"
#include "interpose/context/capture.h"
#include "interpose/features/pressure/rounding.h"
#include "interpose/host/background.h"
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

/*
 * What is handed over is freed and allocated again, which costs far more than a hit: so in each
 * turn this process first works on with it for a while, however short its blocks live, and for
 * another block, however long that does; but not without end. docs/internals/out-of-memory.md has
 * what was measured.
 */
#define KEPT_AT_LEAST_NS (UINT64_C(100) * 1000 * 1000)
#define KEPT_AT_MOST_NS (UINT64_C(500) * 1000 * 1000)

/* By section: the last turn in which this process could have handed over; atomic. */
static uint64_t kept_in_turn[BFC_SEGMENT_POOLS];

static bool keeps_memory(unsigned section, const struct bfc_awaited *awaited) {
    uint64_t waited = bfc_subtract_saturating(bfc_kernel_now_ns(), awaited->turn_ns);
    bool first = bfc_exchange_relaxed(&kept_in_turn[section], awaited->turn_ns) != awaited->turn_ns;
    return waited < KEPT_AT_MOST_NS && (waited < KEPT_AT_LEAST_NS || first);
}

static void hand_over_on(const struct bfc_arena *arena) {
    const struct bfc_segment_pool *section = arena->stats.section;
    struct bfc_segment_header *published = arena->stats.segment;
    struct bfc_awaited awaited = bfc_waiters_want(section);
    if (bfc_arena_is_host(arena) || !published || !awaited.bytes || !awaited.from_here ||
        !has_cached(arena->device, awaited.from_here) ||
        keeps_memory(arena->stats.section_index, &awaited))
        return;
    bfc_waiters_note_given(published, section->device_uuid);
    bfc_give_back_as_free(arena->device, awaited.from_here);
}

void bfc_hand_over(void) {
    const struct bfc_process *process = bfc_process_if_made();
    struct bfc_arena *arena = NULL;
    if (!process || process->options.wait <= 0 || !process->options.yield || bfc_captures_exist() ||
        bfc_background_is_over())
        return;
    while ((arena = bfc_arena_next(arena)))
        hand_over_on(arena);
}
