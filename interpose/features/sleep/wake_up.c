/* Wakes the process, as sleep.h describes. */
#include <string.h>

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "interpose/arena/arena.h"
#include "interpose/config/log.h"
#include "interpose/config/process.h"
#include "interpose/driver/current.h"
#include "interpose/features/sleep/turn.h"
#include "interpose/reuse/last_resort.h"
#include "interpose/stats/events.h"

/*
 * All arenas wake, or none: with the pages of only some of them, two jobs that each hold what the
 * other lacks would wait for each other. So first all pages are made, then all contents restored,
 * and only then are pages handed back to the pools. After a failure before that, all pages go back
 * to the device; the contents are still in the store.
 */

/* The arena that the thread works at: goes_on and create_again, which are called back, have no
 * parameter for it. */
static struct bfc_sleeping_arena *waking;

static bool goes_on(void) {
    return !bfc_sleeping_arena_ends(waking);
}

static void give_all_back(void) {
    for (struct bfc_sleeping_arena *one = bfc_sleeping.arenas; one; one = one->next)
        bfc_sleeping_arena_give_back(one);
}

/* Makes the pages of all arenas; if `on_its_device`, only of those on the device of `waking`. On an
 * error, which is returned, `waking` is the arena whose pages could not be made, and the pages of
 * all arenas were given back. */
static CUresult create_pages(bool on_its_device, bool is_first) {
    CUdevice device = on_its_device ? waking->arena->device : CU_DEVICE_INVALID;
    CUresult error = CUDA_SUCCESS;
    for (struct bfc_sleeping_arena *one = bfc_sleeping.arenas; one && error == CUDA_SUCCESS;
         one = one->next) {
        if (on_its_device && one->arena->device != device)
            continue;
        waking = one;
        if (!goes_on())
            error = CUDA_ERROR_CONTEXT_IS_DESTROYED;
        else
            (void)bfc_sleeping_arena_create(one, is_first, &error);
    }
    if (error != CUDA_SUCCESS)
        give_all_back();
    return error;
}

static bool create_again(struct bfc_call *call) {
    CUresult error = create_pages(true, call->is_first);
    if (error != CUDA_SUCCESS)
        bfc_call_note_fatal(call, error);
    else
        call->status = BFC_OK;
    return error == CUDA_SUCCESS;
}

/* Finds memory on the device of `waking` by the last resorts (last_resort.h), as for an allocation
 * of the bytes of all sleeping pages of that device, and makes these pages. */
static CUresult find_memory(void) {
    CUdeviceptr unused;
    uint64_t bytes = 0;
    for (struct bfc_sleeping_arena *one = bfc_sleeping.arenas; one; one = one->next)
        bytes += one->arena->device == waking->arena->device ? one->bytes : 0;
    struct bfc_call call = bfc_call_of(bfc_driver(), waking->arena, bytes, BFC_REUSE_READY, &unused,
                                       BFC_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
    call.in_pool = true;
    call.again = create_again;
    CUresult result = bfc_last_resort(&call);
    if (call.status == BFC_OK)
        return CUDA_SUCCESS;
    bfc_last_resort_failed(&call);
    bfc_fetch_add_relaxed(&bfc_sleep_told()->refused, 1);
    return result == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : result;
}

static CUresult find_memory_in_context(void) {
    struct bfc_arena *arena = waking->arena;
    bool pushed;
    CUresult result = bfc_arena_make_current(bfc_driver(), arena, &pushed);
    if (result != CUDA_SUCCESS)
        return result;
    result = find_memory();
    bfc_current_leave(bfc_driver(), pushed);
    return result;
}

/* The most searches for memory in one attempt to wake. With several devices one search for each may
 * not be enough: while one device is searched, the pages on the others are given back, and other
 * jobs may take that memory. */
enum { SEARCHES = 8 };

static CUresult create_all(void) {
    CUresult result = create_pages(false, false);
    for (int i = 0; i < SEARCHES && result == CUDA_ERROR_OUT_OF_MEMORY; i++) {
        result = find_memory_in_context();
        if (result != CUDA_SUCCESS)
            break;
        result = create_pages(false, false);
    }
    return result;
}

/* How often a wake begins anew after it has waited, a second at most, for a context to end. */
enum { ENDS_AWAITED = 16 };

static CUresult restore_all(int *error) {
    CUresult result = create_all();
    for (struct bfc_sleeping_arena *one = bfc_sleeping.arenas; one && result == CUDA_SUCCESS;
         one = one->next) {
        waking = one;
        result = goes_on() ? bfc_sleeping_arena_restore(one, bfc_sleeping.file, goes_on, error)
                           : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    if (result != CUDA_SUCCESS)
        give_all_back();
    return result;
}

/* Returns whether the wake failed because the context of `waking` is about to end. If so, waits
 * until the context has ended or the driver has refused to end it. */
static bool await_end(void) {
    bool ends = bfc_sleeping_arena_ends(waking);
    if (ends && bfc_arena_await(waking->arena))
        bfc_arena_leave(waking->arena);
    return ends;
}

/* Gives all woken pages back to their pools. If an arena's context has ended meanwhile,
 * bfc_sleeping_arena_close gives the arena's pages back to the device. */
static void hand_all_over(uint64_t began) {
    struct bfc_sleeping_arena *one;
    while ((one = bfc_sleeping.arenas)) {
        if (bfc_sleeping_arena_hand_over(one))
            bfc_events_add_landmark(&one->arena->stats, BFC_EVENT_AWAKE,
                                    bfc_kernel_now_ns() - began, one->bytes);
        bfc_sleeping.arenas = one->next;
        bfc_sleeping_arena_close(one);
    }
}

static CUresult wake_all(uint64_t began) {
    static unsigned seen;
    CUresult result = CUDA_SUCCESS;
    int error = 0;
    for (int ends = 0; ends < ENDS_AWAITED; ends++) {
        bfc_sleeping_drop_ended();
        waking = bfc_sleeping.arenas;
        result = waking ? restore_all(&error) : CUDA_SUCCESS;
        if (result == CUDA_SUCCESS) {
            hand_all_over(began);
            return CUDA_SUCCESS;
        }
        if (!await_end())
            break;
    }
    bfc_log_repeated(BFC_LOG_ERROR, &seen,
                     "device %d: the job could not wake, and sleeps on with its contents kept: "
                     "CUresult %d%s%s",
                     (int)waking->arena->device, (int)result, error ? ", " : "",
                     error ? strerror(error) : "");
    return result;
}

static CUresult wake_with_turn(void) {
    struct bfc_segment_sleep *told = bfc_sleep_told();
    uint64_t began = bfc_kernel_now_ns(), since = told->since_ns;
    bfc_sleep_enter_state(BFC_SLEEP_WAKING);
    CUresult result = wake_all(began);
    if (result != CUDA_SUCCESS) {
        bfc_sleep_enter_state(BFC_SLEEP_ASLEEP);
        bfc_store_relaxed(&told->since_ns, since);
        return result;
    }
    bfc_store_relaxed(&told->woke_ns, bfc_kernel_now_ns());
    bfc_store_relaxed(&told->wake_ns, bfc_kernel_now_ns() - began);
    bfc_fetch_add_relaxed(&told->wakes, 1);
    told->why[0] = '\0';
    bfc_sleeping_end();
    bfc_log(BFC_LOG_INFO, "awake again");
    return CUDA_SUCCESS;
}

CUresult bfc_wake_up(void) {
    CUresult result = CUDA_SUCCESS;
    if (bfc_sleep_state() == BFC_SLEEP_AWAKE || bfc_process_is_forked())
        return CUDA_SUCCESS;
    int cancel = bfc_cancel_disable();
    if (!bfc_turn_take())
        result = CUDA_ERROR_OUT_OF_MEMORY;
    else {
        if (bfc_sleep_state() == BFC_SLEEP_ASLEEP)
            result = wake_with_turn();
        bfc_turn_give();
    }
    bfc_cancel_restore(cancel);
    return result;
}
