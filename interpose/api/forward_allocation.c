/* Allocations that the driver serves in a pool's place. */
#include "interpose/api/forward_allocation.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "interpose/arena/bypassed.h"
#include "interpose/config/log.h"
#include "interpose/context/capture.h"
#include "interpose/reuse/free_fence.h"
#include "interpose/reuse/give_back.h"
#include "interpose/stats/published_segment.h"

enum {
    RELEASE_WAIT_NS = 1000000000, /* longest wait for regions that other threads are giving back */
    NAP_NS = 20000                /* pause between two looks at what other threads give back */
};

/* Whether another thread is giving cached memory of this device back to the driver. */
static bool is_releasing(const struct bfc_arena *arena) {
    struct bfc_arena *one = NULL;
    struct bfc_pool_room room;
    uint64_t releasing = 0;
    while ((one = bfc_arena_next_on(arena->device, one))) {
        bfc_pool_read_room(one->pool, &room);
        releasing += room.releasing;
    }
    return releasing;
}

/* Makes the pools give cached memory back. Returns whether the bytes may fit below BFC_LIMIT now,
 * so that the caller tries again: memory went back, or other threads are giving some back. */
static bool make_room_below_limit(const struct bfc_arena *arena, uint64_t lacks, uint64_t began) {
    if (bfc_captures_exist())
        return false;
    bool comes = is_releasing(arena);
    if (bfc_give_back_as_free(arena->device, lacks))
        return true;
    comes |= is_releasing(arena);
    if (comes)
        bfc_nap(NAP_NS);
    return comes && bfc_now_ns() - began < RELEASE_WAIT_NS;
}

/* If the bytes do not fit below BFC_LIMIT, the pools give back what they cache: without this
 * library nothing would be cached, and the bytes might fit. */
bool bfc_forward_charge(struct bfc_arena *arena, size_t bytes) {
    static unsigned seen;
    uint64_t lacks, began = 0;
    while (!bfc_bypassed_charge(arena, bytes, &lacks)) {
        began = began ? began : bfc_now_ns();
        if (!make_room_below_limit(arena, lacks, began)) {
            bfc_log_repeated(BFC_LOG_INFO, &seen, "%s were not allocated: BFC_LIMIT leaves no room",
                             BFC_BYTES(bytes));
            return false;
        }
    }
    return true;
}

CUresult bfc_forward_allocation(const struct bfc_driver *driver, CUdeviceptr *pointer, size_t bytes,
                                enum bfc_forward_reason reason) {
    bfc_segment_count_forwarded_allocation(reason);
    CUresult result = driver->cuMemAlloc_v2(pointer, bytes);
    while (result == CUDA_ERROR_OUT_OF_MEMORY && reason != BFC_FORWARD_TOO_LARGE &&
           bfc_give_back_for_call(driver, BFC_HERE))
        result = driver->cuMemAlloc_v2(pointer, bytes);
    if (result == CUDA_SUCCESS)
        bfc_arena_given_out(*pointer, bytes);
    bfc_reuse_note_failure(result);
    return result;
}

CUresult bfc_forward_within_limit(const struct bfc_driver *driver, struct bfc_arena *arena,
                                  CUdeviceptr *pointer, size_t bytes,
                                  enum bfc_forward_reason reason) {
    if (!bfc_forward_charge(arena, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = bfc_forward_allocation(driver, pointer, bytes, reason);
    bfc_bypassed_note(arena, result == CUDA_SUCCESS ? *pointer : 0, bytes);
    return result;
}
