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

/* ---- memory ---- */

/* The arena that is being woken, for the last resorts. */
static struct bfc_sleeping_arena *waking;

static bool create_again(struct bfc_call *call) {
    CUresult error = CUDA_SUCCESS;
    if (!bfc_sleeping_arena_create(waking, call->is_first, &error)) {
        bfc_call_note_fatal(call, error);
        return false;
    }
    call->status = BFC_OK;
    return true;
}

/* Finds memory for an arena by the last resorts (last_resort.h), as for an allocation of the bytes
 * of all its pages. */
static CUresult find_memory(struct bfc_sleeping_arena *one) {
    CUdeviceptr unused;
    struct bfc_call call = bfc_call_of(bfc_driver(), one->arena, one->bytes, BFC_REUSE_READY,
                                       &unused, BFC_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
    call.in_pool = true;
    call.again = create_again;
    waking = one;
    CUresult result = bfc_last_resort(&call);
    waking = NULL;
    if (call.status == BFC_OK)
        return CUDA_SUCCESS;
    bfc_last_resort_failed(&call);
    bfc_fetch_add_relaxed(&bfc_sleep_told()->refused, 1);
    return result == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : result;
}

static CUresult create_pages(struct bfc_sleeping_arena *one) {
    CUresult error = CUDA_SUCCESS;
    bool pushed;
    if (bfc_sleeping_arena_create(one, false, &error) || error != CUDA_ERROR_OUT_OF_MEMORY)
        return error;
    error = bfc_arena_make_current(bfc_driver(), one->arena, &pushed);
    if (error != CUDA_SUCCESS)
        return error;
    error = find_memory(one);
    bfc_current_leave(bfc_driver(), pushed);
    return error;
}

/* ---- all arenas ---- */

static CUresult restore_arena(struct bfc_sleeping_arena *one) {
    int error = 0;
    static unsigned seen;
    CUresult result = create_pages(one);
    if (result == CUDA_SUCCESS)
        result = bfc_sleeping_arena_restore(one, bfc_sleeping.file, &error);
    if (result != CUDA_SUCCESS)
        bfc_log_repeated(BFC_LOG_ERROR, &seen,
                         "device %d: the job could not wake, and sleeps on with its contents kept: "
                         "CUresult %d%s%s",
                         (int)one->arena->device, (int)result, error ? ", " : "",
                         error ? strerror(error) : "");
    return result;
}

/* An arena that has woken leaves the list, so the store has the contents of those that have not. */
static CUresult restore_all(uint64_t began) {
    CUresult result = CUDA_SUCCESS;
    bfc_sleeping_drop_ended();
    while (bfc_sleeping.arenas && result == CUDA_SUCCESS) {
        struct bfc_sleeping_arena *one = bfc_sleeping.arenas;
        result = restore_arena(one);
        if (result != CUDA_SUCCESS)
            break;
        bfc_events_add_landmark(&one->arena->stats, BFC_EVENT_AWAKE, bfc_kernel_now_ns() - began,
                                one->bytes);
        bfc_sleeping.arenas = one->next;
        bfc_sleeping_arena_close(one);
    }
    return result;
}

static CUresult wake_with_turn(void) {
    struct bfc_segment_sleep *told = bfc_sleep_told();
    uint64_t began = bfc_kernel_now_ns(), since = told->since_ns;
    bfc_sleep_enter_state(BFC_SLEEP_WAKING);
    CUresult result = restore_all(began);
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
