/* Groups (group.h): how they begin and end, and how blocks are cut from their ranges. */
#include "interpose/api/group.h"

#include "base/compiler.h"
#include "base/numbers.h"
#include "interpose/api/bfcpreload.h"
#include "interpose/api/open_arena.h"
#include "interpose/context/capture.h"
#include "interpose/host/thread_exit.h"
#include "interpose/reuse/allocate.h"
#include "interpose/reuse/last_resort.h"

__thread struct bfc_group bfc_group INITIAL_EXEC;

/* Cuts a block off the front of what is left of the group's range. False: too little is left, or
 * the pool could not cut the block off. */
static bool carve_from_group(size_t bytes) {
    if (bytes > bfc_group.left ||
        bfc_pool_carve(bfc_group.arena->pool, bfc_group.next, bytes) != BFC_OK)
        return false;
    bfc_group.next += bfc_round_up(bytes, BFC_GRANULE);
    bfc_group.left -= bfc_round_up(bytes, BFC_GRANULE);
    return true;
}

/* Frees a part of the group's range that no allocation got. No work can have used that part since
 * the range was allocated, so it is freed with the fence that the range had then. */
static void give_block_back(CUdeviceptr start) {
    struct bfc_block_info block;
    struct bfc_pool *pool = bfc_group.arena->pool;
    if (bfc_pool_find(pool, start, &block))
        bfc_pool_free(pool, start, block.fence);
}

/* If the next block must start at a multiple of BFC_ALIGNMENT, frees the group's bytes before that
 * multiple. False: from there on, the group has no room for the block. */
static bool skip_lead(size_t bytes) {
    CUdeviceptr lead = bfc_group.next;
    uint64_t granules = bfc_round_up(bytes, BFC_GRANULE) / BFC_GRANULE;
    size_t lead_bytes = bfc_starts_aligned(granules) ? -lead & (BFC_ALIGNMENT - 1) : 0;
    if (!lead_bytes)
        return true;
    if (lead_bytes > bfc_group.left || bytes > bfc_group.left - lead_bytes ||
        !carve_from_group(lead_bytes))
        return false;
    give_block_back(lead);
    return true;
}

bool bfc_group_take(struct bfc_arena *arena, size_t bytes, CUdeviceptr *pointer) {
    if (arena != bfc_group.arena || !skip_lead(bytes))
        return false;
    *pointer = bfc_group.next;
    return carve_from_group(bytes);
}

static bool get_block(const struct bfc_driver *driver, struct bfc_arena *arena, size_t bytes,
                      enum bfc_reuse_how how, CUdeviceptr *start) {
    struct bfc_outcome outcome;
    CUresult result = bfc_reuse_allocate(driver, arena, bytes, how, &outcome);
    if (outcome.status == BFC_OK) {
        *start = outcome.pointer;
        return result == CUDA_SUCCESS;
    }
    struct bfc_call call =
        bfc_call_of(driver, arena, bytes, how, start, outcome.status, outcome.error);
    call.in_pool = true;
    result = bfc_last_resort(&call);
    if (call.status == BFC_OUT_OF_MEMORY)
        bfc_last_resort_failed(&call);
    return result == CUDA_SUCCESS;
}

static __thread bool ends_at_exit INITIAL_EXEC;

static void end_at_exit(void *unused) {
    (void)unused;
    ends_at_exit = false;
    bfc_group_end();
}

int bfc_group_begin(size_t bytes) {
    const struct bfc_driver *driver = bfc_driver();
    enum bfc_forward_reason reason;
    CUdeviceptr start;
    if (bfc_group.arena)
        return BFCPRELOAD_IN_GROUP;
    if (bytes == 0 || bytes > SIZE_MAX / 2)
        return BFCPRELOAD_BAD_ARGUMENT;
    struct bfc_arena *arena = driver && driver->can_pool && bfc_process() && bfc_process_serves()
                                  ? bfc_current_arena(driver, &reason)
                                  : NULL;
    if (!arena)
        return BFCPRELOAD_NO_CONTEXT;
    enum bfc_capture_state captures = bfc_capture_state(driver);
    if (captures == BFC_CAPTURE_BARRED ||
        !get_block(driver, arena, bfc_round_up(bytes, BFC_GRANULE),
                   captures == BFC_CAPTURE_NONE ? BFC_REUSE_ANY : BFC_REUSE_READY, &start))
        return BFCPRELOAD_OUT_OF_MEMORY;
    bfc_arena_keep(arena);
    bfc_at_thread_exit(&ends_at_exit, end_at_exit);
    bfc_group =
        (struct bfc_group){.left = bfc_round_up(bytes, BFC_GRANULE), .next = start, .arena = arena};
    return 0;
}

int bfc_group_end(void) {
    if (!bfc_group.arena)
        return BFCPRELOAD_IN_GROUP;
    if (bfc_process_if_made()) {
        if (bfc_group.left)
            give_block_back(bfc_group.next);
        bfc_arena_drop(bfc_group.arena);
    }
    bfc_group = (struct bfc_group){.arena = NULL};
    return 0;
}
