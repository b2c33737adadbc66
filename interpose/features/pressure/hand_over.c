/* Hands memory over to an allocation of another job that has waited longer. */
#include "interpose/features/pressure/pressure.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/numbers.h"
#include "interpose/config/process.h"
#include "interpose/context/capture.h"
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

/* Whether `bytes` bytes are cached on the device, including those that the driver has added by
 * rounding up. */
static bool has_cached(CUdevice device, uint64_t bytes) {
    uint64_t cached = cached_on(device);
    return bytes <= cached ||
           (bytes / 2 <= cached && bytes <= bfc_add_saturating(cached, bfc_rounded_up_on(device)));
}

/*
 * Memory that is handed over is freed by the driver and allocated again, which costs far more than
 * serving an allocation from the pool. So this process does not hand memory over at once. After
 * another job's allocation has become the first in the queue, the process keeps its memory at each
 * free during KEPT_AT_LEAST_NS, and also at the first free at which it could hand memory over,
 * unless KEPT_AT_MOST_NS have passed. docs/internals/out-of-memory.md has the measurements.
 */
#define KEPT_AT_LEAST_NS (UINT64_C(100) * 1000 * 1000)
#define KEPT_AT_MOST_NS (UINT64_C(500) * 1000 * 1000)

/* atomic: for each pool's section of the segment, the `turn_ns` of the last waiting allocation for
 * which this process could have handed memory over; 0: there was none */
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

void bfc_hand_over(struct bfc_arena *arena, CUdeviceptr pointer, CUresult result, bool may_wait) {
    (void)pointer, (void)result;
    const struct bfc_process *process = bfc_process_if_made();
    if (!may_wait || !bfc_process_watches_frees() || !process || process->options.wait <= 0 ||
        !process->options.yield || bfc_captures_exist() || bfc_background_is_over())
        return;
    arena = NULL;
    while ((arena = bfc_arena_next(arena)))
        hand_over_on(arena);
}
