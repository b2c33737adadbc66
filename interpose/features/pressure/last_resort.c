/* The ladder: one table, one function a rung. */
#include "interpose/features/pressure/last_resort.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "interpose/config/process.h"
#include "interpose/features/pressure/ask_others.h"
#include "interpose/features/pressure/explain.h"
#include "interpose/features/pressure/wait_for_others.h"
#include "interpose/reuse/spill.h"
#include "interpose/stats/events.h"

static bool spill(struct bfc_want *want) {
    struct bfc_arena *host =
        bfc_spill_allocate(want->driver, want->arena, want->bytes, want->how, want->pointer);
    if (!host)
        return false;
    want->arena = host;
    want->status = BFC_OK;
    return true;
}

/* In the order in which they are climbed. A rung asks the pool again itself (bfc_want_again), or
 * serves the allocation in its own way and sets the status to BFC_OK; true: it is served. */
static const struct rung {
    enum bfc_rung number;
    enum bfc_event_kind event; /* when it has saved an allocation */
    bool (*climb)(struct bfc_want *want);
    bool beyond; /* it serves what is larger than the device, from elsewhere than the pool */
} ladder[] = {
    {BFC_RUNG_CONTEXTS, BFC_EVENT_SAVED_CONTEXTS, bfc_ask_contexts, false},
    {BFC_RUNG_JOBS, BFC_EVENT_SAVED_JOBS, bfc_ask_jobs, false},
    {BFC_RUNG_WAIT, BFC_EVENT_WAITED, bfc_wait_for_others, false},
    {BFC_RUNG_SPILL, BFC_EVENT_SPILLED, spill, true},
};

static bool is_in_force(const struct rung *rung) {
    const struct bfc_process *process = bfc_process_if_made();
    return process && process->options.last_resort >> rung->number & 1;
}

static bool can_serve(const struct rung *rung, const struct bfc_want *want) {
    return rung->beyond ? !want->in_pool && bfc_spill_may_serve(want->bytes)
                        : want->bytes <= want->arena->device_total;
}

static bool climb(const struct rung *rung, struct bfc_want *want) {
    const struct bfc_stats_sink *sink = &want->arena->stats;
    struct bfc_rung_counts *counts = &sink->section->rungs[rung->number];
    uint64_t began = bfc_now_ns();
    bool served = rung->climb(want);
    uint64_t took = bfc_now_ns() - began;
    bfc_fetch_add_relaxed(&counts->climbed, 1);
    bfc_fetch_add_relaxed(&counts->saved, served);
    bfc_fetch_add_relaxed(&counts->ns, took);
    if (served || (rung->number == BFC_RUNG_WAIT && want->waited != BFC_WAIT_NOT_BEGUN))
        bfc_events_add_landmark(sink, rung->event, took, want->bytes);
    return served;
}

CUresult bfc_last_resort(struct bfc_want *want) {
    struct bfc_arena *arena = want->arena;
    want->result = CUDA_ERROR_OUT_OF_MEMORY;
    want->since_ns = bfc_kernel_now_ns();
    for (size_t i = 0; i < sizeof ladder / sizeof ladder[0] && want->status == BFC_OUT_OF_MEMORY;
         i++)
        if (is_in_force(&ladder[i]) && can_serve(&ladder[i], want) && climb(&ladder[i], want)) {
            bfc_pool_count_saved(arena->pool);
            return CUDA_SUCCESS;
        }
    return want->result;
}

void bfc_last_resort_failed(const struct bfc_want *want) {
    bfc_pool_count_out_of_memory(want->arena->pool);
    bfc_events_add_landmark(&want->arena->stats, BFC_EVENT_OUT_OF_MEMORY, 0, want->bytes);
    bfc_explain_out_of_memory(want);
}
