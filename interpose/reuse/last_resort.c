/* The last resorts: the other contexts, and whatever features offer, in the order of the rungs. */
#include "interpose/reuse/last_resort.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/numbers.h"
#include "interpose/config/process.h"
#include "interpose/reuse/give_back.h"
#include "interpose/stats/events.h"
#include "interpose/table/feature.h"
#include "pool/pages.h"
#include "segment/queue.h"

bool bfc_call_try_again(struct bfc_call *call) {
    struct bfc_outcome outcome;
    if (call->again)
        return call->again(call);
    call->result = bfc_reuse_allocate_again(call->driver, call->arena, call->bytes, call->how,
                                            call->is_first, &outcome);
    call->status = outcome.status;
    if (outcome.status != BFC_OK && outcome.error != CUDA_SUCCESS)
        call->error = outcome.error;
    if (outcome.status != BFC_OK || call->result != CUDA_SUCCESS)
        return false;
    *call->pointer = outcome.pointer;
    return true;
}

uint64_t bfc_call_lacks(const struct bfc_call *call) {
    struct bfc_page_stats pages;
    if (call->again)
        return call->bytes;
    if (!bfc_pool_page_stats(call->arena->pool, &pages))
        return bfc_pool_least_growth(call->arena->pool, call->bytes);
    return bfc_subtract_saturating(bfc_in_driver_pages(call->bytes), pages.ready);
}

uint64_t bfc_call_device_lacks(const struct bfc_call *call) {
    size_t free_bytes, total;
    if (!call->driver->cuMemGetInfo_v2 ||
        call->driver->cuMemGetInfo_v2(&free_bytes, &total) != CUDA_SUCCESS)
        return call->bytes;
    uint64_t lacks = bfc_in_driver_pages(bfc_call_lacks(call));
    return bfc_subtract_saturating(lacks + call->arena->left_to_others, free_bytes);
}

uint64_t bfc_call_limit_lacks(const struct bfc_call *call) {
    uint64_t reserved = bfc_load_relaxed(&call->arena->on->reserved);
    return bfc_subtract_saturating(bfc_add_saturating(reserved, bfc_call_lacks(call)),
                                   call->arena->limit);
}

/* Has the device's other pools give back the memory that the allocation lacks: without this
 * library, memory that one context has freed is available to the device's other contexts. If
 * nothing seems to be lacking, although the driver has refused, those pools give back as many bytes
 * as the program requested. */
static bool empty_contexts(const struct bfc_call *call) {
    uint64_t lacking = bfc_call_device_lacks(call), over = bfc_call_limit_lacks(call);
    uint64_t bytes = lacking || over ? bfc_max(lacking, over) : call->bytes;
    return bfc_give_back_for_sibling(call->arena, bytes);
}

/* Has the process's other contexts give memory back and tries again. Another thread may take the
 * memory first, so this repeats for at most a second, as long as memory is given back. */
static bool ask_contexts(struct bfc_call *call) {
    uint64_t until = bfc_now_ns() + BFC_NS_PER_SECOND;
    bool came = true, served = false;
    while (came && !served && call->status == BFC_OUT_OF_MEMORY) {
        came = bfc_now_ns() < until && empty_contexts(call);
        served = came && bfc_call_try_again(call);
    }
    return served;
}

static const struct bfc_resort other_contexts = {
    .rung = BFC_RUNG_CONTEXTS, .event = BFC_EVENT_SAVED_CONTEXTS, .serve = ask_contexts};

/* Finds the last resort of a rung; NULL: neither the core nor a feature of this build has one. */
static const struct bfc_resort *find_last_resort(enum bfc_rung rung) {
    if (rung == other_contexts.rung)
        return &other_contexts;
    BFC_FOR_EACH_FEATURE(feature)
    for (unsigned i = 0; i < BFC_RESORTS_OF_FEATURE; i++) {
        const struct bfc_resort *resort = &(*feature)->resorts[i];
        if (resort->serve && resort->rung == rung)
            return resort;
    }
    return NULL;
}

static bool is_in_force(enum bfc_rung rung) {
    const struct bfc_process *process = bfc_process_if_made();
    return process && process->options.last_resort >> rung & 1;
}

static bool may_serve(const struct bfc_resort *resort, const struct bfc_call *call) {
    return resort->may_serve ? resort->may_serve(call) : call->bytes <= call->arena->device_total;
}

static bool try_resort(const struct bfc_resort *resort, struct bfc_call *call) {
    const struct bfc_stats_sink *sink = &call->arena->stats;
    struct bfc_rung_counts *counts = &sink->section->rungs[resort->rung];
    uint64_t began = bfc_now_ns();
    bool served = resort->serve(call);
    uint64_t took = bfc_now_ns() - began;
    bfc_fetch_add_relaxed(&counts->climbed, 1);
    bfc_fetch_add_relaxed(&counts->saved, served);
    bfc_fetch_add_relaxed(&counts->ns, took);
    if (served || (resort->rung == BFC_RUNG_WAIT && call->waited != BFC_WAIT_NOT_BEGUN))
        bfc_events_add_landmark(sink, resort->event, took, call->bytes);
    return served;
}

CUresult bfc_last_resort(struct bfc_call *call) {
    struct bfc_arena *arena = call->arena;
    call->result = CUDA_ERROR_OUT_OF_MEMORY;
    call->since_ns = bfc_kernel_now_ns();
    for (unsigned rung = 0; rung < BFC_RUNGS && call->status == BFC_OUT_OF_MEMORY; rung++) {
        const struct bfc_resort *resort = find_last_resort((enum bfc_rung)rung);
        if (resort && is_in_force(resort->rung) && may_serve(resort, call) &&
            try_resort(resort, call)) {
            bfc_pool_count_saved(arena->pool);
            return CUDA_SUCCESS;
        }
    }
    return call->result;
}

void bfc_last_resort_failed(const struct bfc_call *call) {
    bfc_pool_count_out_of_memory(call->arena->pool);
    bfc_events_add_landmark(&call->arena->stats, BFC_EVENT_OUT_OF_MEMORY, 0, call->bytes);
    BFC_TELL_FEATURES(out_of_memory, call);
}
