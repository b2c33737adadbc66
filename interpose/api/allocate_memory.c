/*
 * Allocates for the program: bfc_allocate and bfc_allocate_hit serve usual calls,
 * allocate_with_arena_checks and allocate_with_all_checks unusual ones, and look_further those for
 * which the pool has no memory.
 */
#include "base/bytes.h"
#include "base/compiler.h"
#include "interpose/api/forward_allocation.h"
#include "interpose/api/group.h"
#include "interpose/api/memory.h"
#include "interpose/api/open_arena.h"
#include "interpose/config/process.h"
#include "interpose/context/capture.h"
#include "interpose/pointers/export_handle.h"
#include "interpose/reuse/allocate.h"
#include "interpose/reuse/free_fence.h"
#include "interpose/reuse/last_resort.h"
#include "interpose/stats/events.h"
#include "interpose/table/feature.h"

/* With -DBFC_CHECKED the library checks the pool after every call, and a fault ends the process. */
#ifdef BFC_CHECKED
#include <stdio.h>
#include <stdlib.h>
#define BFC_CHECK_POOL(pool)                                                                       \
    do {                                                                                           \
        const char *fault_ = bfc_pool_check(pool);                                                 \
        if (fault_) {                                                                              \
            fprintf(stderr, "bfcpreload: pool check: %s\n", fault_);                               \
            abort();                                                                               \
        }                                                                                          \
    } while (0)
#else
#define BFC_CHECK_POOL(pool) ((void)0)
#endif

static NOINLINE CUresult allocate_with_all_checks(CUdeviceptr *pointer, size_t bytes);
static NOINLINE CUresult allocate_with_arena_checks(struct bfc_arena *arena, CUdeviceptr *pointer,
                                                    size_t bytes);
static NOINLINE CUresult look_further(const struct bfc_driver *driver, struct bfc_arena *arena,
                                      CUdeviceptr *pointer, size_t bytes, enum bfc_reuse_how how,
                                      enum bfc_status status, CUresult error, uint64_t start);

/* Counts an allocation of the arena and records it as an event. This must be done before the call
 * returns: after that the program may free the block, and the free is to be recorded later. */
static ALWAYS_INLINE void note_allocation(const struct bfc_arena *arena, CUdeviceptr pointer,
                                          size_t bytes, uint64_t start) {
    unsigned bin = bfc_size_bin(bytes);
    bfc_events_add_allocation(&arena->stats, pointer, bytes, bin, start);
    bfc_features_count_allocation(arena, pointer, bytes, bin);
}

static ALWAYS_INLINE CUresult allocate_from_pool(struct bfc_arena *arena, CUdeviceptr *pointer,
                                                 size_t bytes, uint64_t start) {
    struct bfc_block_info block;
    enum bfc_status status = bfc_pool_allocate(arena->pool, bytes, BFC_ALLOCATE_UNCOUNTED, &block);
    BFC_CHECK_POOL(arena->pool);
    if (UNLIKELY(status != BFC_OK))
        return look_further(bfc_driver_found, arena, pointer, bytes, BFC_REUSE_ANY, status,
                            (CUresult)block.error, start);
    *pointer = block.start;
    note_allocation(arena, block.start, bytes, start);
    return CUDA_SUCCESS;
}

/* An allocation whose time is measured. It is a function of its own, so that the code of other
 * allocations need not keep a start time. */
static NOINLINE CUresult allocate_timed(struct bfc_arena *arena, CUdeviceptr *pointer,
                                        size_t bytes) {
    return allocate_from_pool(arena, pointer, bytes, bfc_events_clock(BFC_TIMED_ALLOCATIONS));
}

CUresult bfc_allocate(CUdeviceptr *pointer, size_t bytes) {
    if (UNLIKELY(!bfc_process_is_usual() || !pointer || !bytes || bfc_captures_exist()))
        return allocate_with_all_checks(pointer, bytes);
    struct bfc_arena *arena = bfc_arena_last_of(bfc_context_id(bfc_driver_found, NULL));
    if (UNLIKELY(!arena || bytes > bfc_arena_plain_most(arena) || bfc_group.left))
        return allocate_with_arena_checks(arena, pointer, bytes);
    if (bfc_events_is_timed(BFC_TIMED_ALLOCATIONS))
        return allocate_timed(arena, pointer, bytes);
    return allocate_from_pool(arena, pointer, bytes, 0);
}

/* Serves a request of bfc_allocate_hit for more than bfc_arena_plain_most(arena) bytes, if a free
 * block of the pool can serve it at once. If not, returns BFC_OUT_OF_MEMORY. */
static NOINLINE enum bfc_status hit_with_arena_checks(const struct bfc_driver *driver,
                                                      struct bfc_arena *arena, size_t bytes,
                                                      struct bfc_block_info *block) {
    struct bfc_outcome outcome;
    if (bytes > arena->bypass_above || bytes > arena->device_total ||
        bfc_reuse_allocate(driver, arena, bytes, BFC_REUSE_THERE, &outcome) != CUDA_SUCCESS)
        return BFC_OUT_OF_MEMORY;
    block->start = outcome.pointer;
    return BFC_OK;
}

bool bfc_allocate_hit(CUdeviceptr *pointer, size_t bytes, unsigned long long context) {
    struct bfc_block_info block;
    if (!bfc_process_is_usual() || !bytes || bfc_captures_exist() || bfc_group.left)
        return false;
    const struct bfc_driver *driver = bfc_driver_found;
    struct bfc_arena *arena = bfc_thread_arena.arena;
    if (!bfc_arena_last_of(context) || bfc_context_id(driver, NULL) != context)
        return false;
    bfc_thread_arena.has_context = true;
    uint64_t start = bfc_events_start(BFC_TIMED_ALLOCATIONS);
    enum bfc_status status =
        bytes <= bfc_arena_plain_most(arena)
            ? bfc_pool_allocate(arena->pool, bytes, BFC_ALLOCATE_HIT_ONLY, &block)
            : hit_with_arena_checks(driver, arena, bytes, &block);
    BFC_CHECK_POOL(arena->pool);
    if (status != BFC_OK)
        return false;
    *pointer = block.start;
    note_allocation(arena, block.start, bytes, start);
    return true;
}

/* Serves a request at an address of the plan that the job follows (BFC_PLAN). False: there is no
 * plan, it has no address for the request, or the request needs the checks of allocate_in. */
static ALWAYS_INLINE bool allocate_placed(struct bfc_arena *arena, CUdeviceptr *pointer,
                                          size_t bytes) {
    const struct bfc_placer *placer = bfc_load_acquire(&arena->placer);
    struct bfc_block_info block;
    if (!placer || bytes > arena->plain_limit || bfc_load_relaxed(&arena->fatal) || bfc_group.left)
        return false;
    uint64_t start = bfc_events_start(BFC_TIMED_ALLOCATIONS);
    if (!placer->take(arena, bytes, &block))
        return false;
    *pointer = block.start;
    note_allocation(arena, block.start, bytes, start);
    return true;
}

/* Counts an allocation that a last resort has served, or reports that there is no memory. If
 * `status` is BFC_ASLEEP, waking the job has failed, which was reported already. */
static CUresult conclude_allocation(struct bfc_call *call, CUresult result, uint64_t start) {
    if (call->status == BFC_OK && result == CUDA_SUCCESS)
        note_allocation(call->arena, *call->pointer, call->bytes, start);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && call->status != BFC_ASLEEP)
        bfc_last_resort_failed(call);
    return result;
}

/* Serves a request for more bytes than the device has: by the driver or, if that is out of memory,
 * by last resorts. The pools give nothing back for it, since that could not help. */
static NOINLINE CUresult look_beyond_device(const struct bfc_driver *driver,
                                            struct bfc_arena *arena, CUdeviceptr *pointer,
                                            size_t bytes, enum bfc_reuse_how how, uint64_t start) {
    struct bfc_call call =
        bfc_call_of(driver, arena, bytes, how, pointer, BFC_OUT_OF_MEMORY, CUDA_SUCCESS);
    CUresult result = bfc_forward_allocation(driver, pointer, bytes, BFC_FORWARD_TOO_LARGE);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        result = conclude_allocation(&call, bfc_last_resort(&call), start);
    return result;
}

static ALWAYS_INLINE CUresult allocate_in(const struct bfc_driver *driver, struct bfc_arena *arena,
                                          CUdeviceptr *pointer, size_t bytes,
                                          enum bfc_reuse_how how) {
    struct bfc_outcome outcome;
    if (bytes > arena->bypass_above)
        return bfc_forward_within_limit(driver, arena, pointer, bytes, BFC_FORWARD_BYPASSED);
    uint64_t start = bfc_events_start(BFC_TIMED_ALLOCATIONS);
    if (bytes > arena->device_total)
        return look_beyond_device(driver, arena, pointer, bytes, how, start);
    if (bfc_group.left != 0 && bfc_group_take(arena, bytes, pointer)) {
        note_allocation(arena, *pointer, bytes, start);
        return CUDA_SUCCESS;
    }
    CUresult result = bfc_reuse_allocate(driver, arena, bytes, how, &outcome);
    BFC_CHECK_POOL(arena->pool);
    if (outcome.status != BFC_OK)
        return look_further(driver, arena, pointer, bytes, how, outcome.status, outcome.error,
                            start);
    if (result == CUDA_SUCCESS) {
        *pointer = outcome.pointer;
        note_allocation(arena, outcome.pointer, bytes, start);
    }
    return result;
}

/* Serves what bfc_allocate does not: calls in another arena than the thread's last one (NULL), in a
 * group (group.h), in a failed context, in mode ordered or under a plan, and large requests. */
static NOINLINE CUresult allocate_with_arena_checks(struct bfc_arena *arena, CUdeviceptr *pointer,
                                                    size_t bytes) {
    const struct bfc_driver *driver = bfc_driver_found;
    enum bfc_forward_reason reason = BFC_FORWARD_NO_CONTEXT;
    if (!arena && !(arena = bfc_open_arena(driver, &reason)))
        return bfc_forward_allocation(driver, pointer, bytes, reason);
    if (allocate_placed(arena, pointer, bytes))
        return CUDA_SUCCESS;
    return allocate_in(driver, arena, pointer, bytes, BFC_REUSE_ANY);
}

static CUresult check_and_allocate(const struct bfc_driver *driver, CUdeviceptr *pointer,
                                   size_t bytes) {
    const struct bfc_process *process = bfc_process();
    if (process && process->refuse)
        return CUDA_ERROR_INVALID_VALUE;
    if (!process || !process->serves)
        return bfc_forward_allocation(driver, pointer, bytes, BFC_FORWARD_DISABLED);
    if (!pointer || bytes == 0)
        return bfc_forward_allocation(driver, pointer, bytes, BFC_FORWARD_BAD_CALL);
    if (!driver->can_pool)
        return bfc_forward_allocation(driver, pointer, bytes, BFC_FORWARD_OLD_DRIVER);
    enum bfc_forward_reason reason = BFC_FORWARD_CAPTURE;
    enum bfc_capture_state captures = bfc_capture_state(driver);
    struct bfc_arena *arena =
        captures == BFC_CAPTURE_BARRED ? NULL : bfc_current_arena(driver, &reason);
    if (!arena)
        return bfc_forward_allocation(driver, pointer, bytes, reason);
    if (bfc_exports_need_own())
        return bfc_forward_within_limit(driver, arena, pointer, bytes, BFC_FORWARD_EXPORTS);
    return allocate_in(driver, arena, pointer, bytes,
                       captures == BFC_CAPTURE_NONE ? BFC_REUSE_ANY : BFC_REUSE_READY);
}

/* Serves calls that are not as usual: the first one, those in a disabled process, in a forked
 * child, while a trace is recorded or during a capture, and those whose arguments the driver must
 * judge. */
static NOINLINE CUresult allocate_with_all_checks(CUdeviceptr *pointer, size_t bytes) {
    BFC_FIND_DRIVER(driver, cuMemAlloc_v2);
    CUresult result = check_and_allocate(driver, pointer, bytes);
    if (!bfc_process_if_made())
        return result;
    if (result == CUDA_SUCCESS)
        BFC_TELL_FEATURES(allocated, *pointer, bytes);
    else if (result == CUDA_ERROR_OUT_OF_MEMORY)
        BFC_TELL_FEATURES(allocation_failed, bytes);
    return result;
}

/* Answers a call that neither the pool nor a last resort has served. If the host had no memory, or
 * the driver has only failed to make pages, or was not asked because a tool's callback has called
 * us while it makes memory for the pool, the driver's cuMemAlloc may still succeed, and is called.
 * Otherwise returns out of memory, or another error that the driver gave the pool. */
static CUresult answer_failure(const struct bfc_call *call) {
    static unsigned seen;
    bool fatal = bfc_driver_is_fatal(call->error);
    bfc_reuse_note_failure(call->error);
    if (call->status == BFC_NO_HOST_MEMORY)
        return bfc_forward_within_limit(call->driver, call->arena, call->pointer, call->bytes,
                                        BFC_FORWARD_NO_HOST_MEMORY);
    bool driver_may = call->arena->has_pages || call->error == CUDA_SUCCESS;
    if (driver_may && !fatal && call->status == BFC_UPSTREAM_FAILED)
        return bfc_forward_within_limit(call->driver, call->arena, call->pointer, call->bytes,
                                        BFC_FORWARD_NO_PAGES);
    if (call->error == CUDA_SUCCESS)
        bfc_log_repeated(BFC_LOG_INFO, &seen,
                         "the pool did not grow for %s: BFC_LIMIT leaves no room",
                         BFC_BYTES(call->bytes));
    if (call->error == CUDA_SUCCESS || (call->status == BFC_OUT_OF_MEMORY && !fatal))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return call->error;
}

/* Serves an allocation by last resorts, after the pool could not serve it: `status` and `error` are
 * the pool's answer. */
static NOINLINE CUresult look_further(const struct bfc_driver *driver, struct bfc_arena *arena,
                                      CUdeviceptr *pointer, size_t bytes, enum bfc_reuse_how how,
                                      enum bfc_status status, CUresult error, uint64_t start) {
    struct bfc_call call = bfc_call_of(driver, arena, bytes, how, pointer, status, error);
    CUresult result = bfc_last_resort(&call);
    if (call.status != BFC_OK)
        result = answer_failure(&call);
    return conclude_allocation(&call, result, start);
}
