/* Allocating, freeing and asking, for the program. */
#include "interpose/api/memory.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "interpose/api/checked.h"
#include "interpose/api/group.h"
#include "interpose/api/open_arena.h"
#include "interpose/arena/bypassed.h"
#include "interpose/arena/upstream.h"
#include "interpose/config/process.h"
#include "interpose/context/capture.h"
#include "interpose/driver/driver.h"
#include "interpose/pointers/block_attributes.h"
#include "interpose/pointers/export_handle.h"
#include "interpose/reuse/allocate.h"
#include "interpose/reuse/free_in_stream_order.h"
#include "interpose/reuse/free_modes.h"
#include "interpose/reuse/give_back.h"
#include "interpose/reuse/last_resort.h"
#include "interpose/stats/events.h"
#include "interpose/stats/published_segment.h"
#include "interpose/table/feature.h"

/* ---- forwarding ---- */

/* How long to wait for regions that other threads are giving back; and between two looks. */
enum { RELEASE_WAIT_NS = 1000000000, NAP_NS = 20000 };

/* Whether another thread is just giving back what the device's pools have cached. */
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

/* Whether it may be tried again: something went, or others are at it. */
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

/* Against BFC_LIMIT; what the pools only cache goes for it, as natively it would not count. */
static bool charge_limit(struct bfc_arena *arena, size_t bytes) {
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

/*
 * Forwards an allocation. If the driver is out of memory, the pools give back what they cache and
 * the call is made again.
 */
static NOINLINE CUresult forward_allocation(const struct bfc_driver *driver, CUdeviceptr *pointer,
                                            size_t bytes, enum bfc_forward_reason reason) {
    bfc_segment_count_forwarded_allocation(reason);
    CUresult result = driver->cuMemAlloc_v2(pointer, bytes);
    while (result == CUDA_ERROR_OUT_OF_MEMORY && reason != BFC_FORWARD_TOO_LARGE &&
           bfc_give_back_for_call(driver, BFC_HERE))
        result = driver->cuMemAlloc_v2(pointer, bytes);
    if (result == CUDA_SUCCESS)
        bfc_arena_given_out(*pointer, bytes);
    return result;
}

/* Of the arena's context: it counts against the limit as if the pool had grown. */
static NOINLINE CUresult forward_within_limit(const struct bfc_driver *driver,
                                              struct bfc_arena *arena, CUdeviceptr *pointer,
                                              size_t bytes, enum bfc_forward_reason reason) {
    if (!charge_limit(arena, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = forward_allocation(driver, pointer, bytes, reason);
    bfc_bypassed_note(arena, result == CUDA_SUCCESS ? *pointer : 0, bytes);
    return result;
}

/* Whose block it is; NULL: not ours, or not ours to touch. */
static struct bfc_arena *owner_of(CUdeviceptr pointer) {
    return bfc_process_if_made() ? bfc_arena_living_of(pointer) : NULL;
}

/* ---- allocating ---- */

/* After an allocation that the arena served, before the program has its address. */
static ALWAYS_INLINE void note_allocation(const struct bfc_arena *arena, CUdeviceptr pointer,
                                          size_t bytes, uint64_t start) {
    unsigned bin = bfc_size_bin(bytes);
    bfc_events_add_allocation(&arena->stats, pointer, bytes, bin, start);
    bfc_features_count_allocation(arena, pointer, bytes, bin);
}

/* That neither pages nor a region of the pool's size can be had says nothing of cudaMalloc. */
static bool is_of_pages(const struct bfc_call *call, CUresult result) {
    return call->arena->has_pages && !bfc_driver_is_fatal(result) &&
           call->status == BFC_UPSTREAM_FAILED;
}

/* The pool could not serve it: whatever the driver said when it was asked to grow is the answer;
 * but where memory was lacking in the end, not what it said of pages before. */
static CUresult answer_failure(const struct bfc_call *call) {
    static unsigned seen;
    if (call->status == BFC_NO_HOST_MEMORY)
        return forward_within_limit(call->driver, call->arena, call->pointer, call->bytes,
                                    BFC_FORWARD_NO_HOST_MEMORY);
    CUresult result = bfc_upstream_take_error();
    if (is_of_pages(call, result))
        return forward_within_limit(call->driver, call->arena, call->pointer, call->bytes,
                                    BFC_FORWARD_NO_PAGES);
    if (result != CUDA_SUCCESS)
        return call->status == BFC_OUT_OF_MEMORY && !bfc_driver_is_fatal(result)
                   ? CUDA_ERROR_OUT_OF_MEMORY
                   : result;
    bfc_log_repeated(BFC_LOG_INFO, &seen, "the pool did not grow for %s: BFC_LIMIT leaves no room",
                     BFC_BYTES(call->bytes));
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* What a last resort served, or could not; `start` as bfc_events_add_allocation takes it. */
static CUresult conclude_allocation(struct bfc_call *call, CUresult result, uint64_t start) {
    if (call->status == BFC_OK && result == CUDA_SUCCESS)
        note_allocation(call->arena, *call->pointer, call->bytes, start);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        bfc_last_resort_failed(call);
    return result;
}

/* More than the device has: nothing that the pool could give back would help. */
static NOINLINE CUresult look_beyond_device(const struct bfc_driver *driver,
                                            struct bfc_arena *arena, CUdeviceptr *pointer,
                                            size_t bytes, enum bfc_reuse_how how, uint64_t start) {
    struct bfc_call call = bfc_call_of(driver, arena, bytes, how, pointer, BFC_OUT_OF_MEMORY);
    CUresult result = forward_allocation(driver, pointer, bytes, BFC_FORWARD_TOO_LARGE);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) /* else it is the driver's, and no arena's */
        result = conclude_allocation(&call, bfc_last_resort(&call), start);
    return result;
}

/* Serves, by the last resorts, an allocation that the pool could not serve. */
static NOINLINE CUresult look_further(struct bfc_call *call, uint64_t start) {
    CUresult result = bfc_last_resort(call);
    if (call->status != BFC_OK)
        result = answer_failure(call);
    return conclude_allocation(call, result, start);
}

static ALWAYS_INLINE CUresult allocate_in(const struct bfc_driver *driver, struct bfc_arena *arena,
                                          CUdeviceptr *pointer, size_t bytes,
                                          enum bfc_reuse_how how) {
    enum bfc_status status;
    uint64_t start = bfc_events_allocate_start();
    if (bytes > arena->device_total)
        return look_beyond_device(driver, arena, pointer, bytes, how, start);
    if (bfc_group.left != 0 && bfc_group_take(arena, bytes, pointer)) {
        note_allocation(arena, *pointer, bytes, start);
        return CUDA_SUCCESS;
    }
    CUresult result = bfc_reuse_allocate(driver, arena, bytes, how, pointer, &status);
    BFC_CHECK_POOL(arena->pool);
    if (status != BFC_OK) {
        struct bfc_call call = bfc_call_of(driver, arena, bytes, how, pointer, status);
        return look_further(&call, start);
    }
    if (result == CUDA_SUCCESS)
        note_allocation(arena, *pointer, bytes, start);
    return result;
}

static inline CUresult allocate_of(const struct bfc_driver *driver, struct bfc_arena *arena,
                                   CUdeviceptr *pointer, size_t bytes,
                                   enum bfc_capture_state captures) {
    if (bytes > arena->bypass_above)
        return forward_within_limit(driver, arena, pointer, bytes, BFC_FORWARD_BYPASSED);
    return allocate_in(driver, arena, pointer, bytes,
                       captures == BFC_CAPTURE_NONE ? BFC_REUSE_ANY : BFC_REUSE_READY);
}

/* From the pool of the current context, unless a capture or the want of a context forbids it. */
static CUresult allocate_pooled(const struct bfc_driver *driver, CUdeviceptr *pointer,
                                size_t bytes) {
    enum bfc_forward_reason reason = BFC_FORWARD_CAPTURE;
    enum bfc_capture_state captures = bfc_capture_state(driver);
    struct bfc_arena *arena =
        captures == BFC_CAPTURE_BARRED ? NULL : bfc_current_arena(driver, &reason);
    if (!arena)
        return forward_allocation(driver, pointer, bytes, reason);
    if (bfc_exports_need_own())
        return forward_within_limit(driver, arena, pointer, bytes, BFC_FORWARD_EXPORTS);
    return allocate_of(driver, arena, pointer, bytes, captures);
}

static CUresult ask_and_allocate(const struct bfc_driver *driver, CUdeviceptr *pointer,
                                 size_t bytes) {
    const struct bfc_process *process = bfc_process();
    if (process && process->refuse)
        return CUDA_ERROR_INVALID_VALUE;
    if (!process || !process->serves)
        return forward_allocation(driver, pointer, bytes, BFC_FORWARD_DISABLED);
    if (!pointer || bytes == 0)
        return forward_allocation(driver, pointer, bytes, BFC_FORWARD_BAD_CALL);
    if (!driver->can_pool)
        return forward_allocation(driver, pointer, bytes, BFC_FORWARD_OLD_DRIVER);
    return allocate_pooled(driver, pointer, bytes);
}

/* Where the pool alone would serve it at once, the placer may have a place for it at once. */
static ALWAYS_INLINE bool allocate_placed(struct bfc_arena *arena, CUdeviceptr *pointer,
                                          size_t bytes) {
    const struct bfc_placer *placer = bfc_load_acquire(&arena->placer);
    struct bfc_block_info block;
    if (!placer || bytes > arena->plain_limit || bfc_load_relaxed(&arena->fatal) || bfc_group.left)
        return false;
    uint64_t start = bfc_events_allocate_start();
    if (!placer->take(arena, bytes, &block))
        return false;
    *pointer = block.start;
    note_allocation(arena, block.start, bytes, start);
    return true;
}

/*
 * The slow path for a call with no arena, in a group, of an odd size, in a failed context, in mode
 * ordered or under a plan.
 */
static NOINLINE CUresult allocate_with_arena_checks(const struct bfc_driver *driver,
                                                    struct bfc_arena *arena, CUdeviceptr *pointer,
                                                    size_t bytes, enum bfc_forward_reason reason) {
    if (arena && allocate_placed(arena, pointer, bytes))
        return CUDA_SUCCESS;
    return arena ? allocate_of(driver, arena, pointer, bytes, BFC_CAPTURE_NONE)
                 : forward_allocation(driver, pointer, bytes, reason);
}

static NOINLINE CUresult look_beyond(const struct bfc_driver *driver, struct bfc_arena *arena,
                                     CUdeviceptr *pointer, size_t bytes, enum bfc_status status,
                                     uint64_t start) {
    struct bfc_call call = bfc_call_of(driver, arena, bytes, BFC_REUSE_ANY, pointer, status);
    return look_further(&call, start);
}

static void tell_of_allocation(CUdeviceptr pointer, size_t bytes) {
    if (bfc_process_if_made())
        BFC_TELL_FEATURES(allocated, pointer, bytes);
}

static void tell_of_failure(size_t bytes) {
    if (bfc_process_if_made())
        BFC_TELL_FEATURES(allocation_failed, bytes);
}

/*
 * The slow path for the first call, a disabled process, a forked child, a process that records,
 * arguments that the driver must judge, and a capture.
 */
static NOINLINE CUresult allocate_with_all_checks(CUdeviceptr *pointer, size_t bytes) {
    BFC_FIND_DRIVER(driver, cuMemAlloc_v2);
    CUresult result = ask_and_allocate(driver, pointer, bytes);
    if (result == CUDA_SUCCESS)
        tell_of_allocation(*pointer, bytes);
    else if (result == CUDA_ERROR_OUT_OF_MEMORY)
        tell_of_failure(bytes);
    return result;
}

CUresult bfc_allocate(CUdeviceptr *pointer, size_t bytes) {
    struct bfc_block_info block;
    enum bfc_forward_reason reason;
    if (UNLIKELY(!bfc_process_is_usual() || !pointer || !bytes || bfc_captures_exist()))
        return allocate_with_all_checks(pointer, bytes);
    const struct bfc_driver *driver = bfc_driver_found;
    struct bfc_arena *arena = bfc_current_arena(driver, &reason);
    if (UNLIKELY(!arena || bytes > bfc_arena_plain_most(arena) || bfc_group.left))
        return allocate_with_arena_checks(driver, arena, pointer, bytes, reason);
    uint64_t start = bfc_events_allocate_start();
    enum bfc_status status = bfc_pool_allocate(arena->pool, bytes, BFC_ALLOCATE_UNCOUNTED, &block);
    BFC_CHECK_POOL(arena->pool);
    if (UNLIKELY(status != BFC_OK))
        return look_beyond(driver, arena, pointer, bytes, status, start);
    *pointer = block.start;
    note_allocation(arena, block.start, bytes, start);
    return CUDA_SUCCESS;
}

/* Where requests must be looked at before they are put to the pool. */
static NOINLINE enum bfc_status hit_with_arena_checks(const struct bfc_driver *driver,
                                                      struct bfc_arena *arena, size_t bytes,
                                                      struct bfc_block_info *block) {
    enum bfc_status status;
    CUdeviceptr start;
    if (bytes > arena->bypass_above || bytes > arena->device_total ||
        bfc_reuse_allocate(driver, arena, bytes, BFC_REUSE_THERE, &start, &status) != CUDA_SUCCESS)
        return BFC_OUT_OF_MEMORY;
    block->start = start;
    return BFC_OK;
}

bool bfc_allocate_hit(CUdeviceptr *pointer, size_t bytes, unsigned long long context) {
    struct bfc_block_info block;
    if (!bfc_process_is_usual() || !bytes || bfc_captures_exist() || bfc_group.left)
        return false;
    const struct bfc_driver *driver = bfc_driver_found;
    struct bfc_arena *arena = bfc_arena_last_if(driver, context);
    if (!arena)
        return false;
    uint64_t start = bfc_events_allocate_start();
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

/* ---- freeing ---- */

/* A free that has failed, whose answer the runtime is to hear from its driver. */
static __thread struct {
    CUdeviceptr pointer; /* 0: none */
    CUresult result;
} answered INITIAL_EXEC;

/* After a free: removes the freed block's attributes, and counts the free in the segment. */
static CUresult finish_free(struct bfc_arena *arena, CUdeviceptr pointer, CUresult result,
                            uint64_t attributed, uint64_t start) {
    if (result == CUDA_SUCCESS) {
        if (attributed)
            bfc_exports_freed(attributed);
        bfc_events_add_free(&arena->stats, pointer, start);
        return result;
    }
    if (result == CUDA_ERROR_INVALID_VALUE)
        bfc_events_add_landmark(&arena->stats, BFC_EVENT_INVALID_FREE, pointer, 0);
    return result;
}

/* Around a free that features may want to see. */
static void tell_before_free(CUdeviceptr pointer, CUstream stream) {
    if (bfc_process_if_made())
        BFC_TELL_FEATURES(freeing, pointer, stream);
}

/* What was allocated past the pool no longer counts. Returns `result`. */
static CUresult note_forwarded_free(CUdeviceptr pointer, CUresult result) {
    if (result == CUDA_SUCCESS && bfc_process_if_made())
        bfc_bypassed_freed(pointer);
    return result;
}

static CUresult tell_of_free(struct bfc_arena *arena, CUdeviceptr pointer, CUresult result,
                             bool may_wait) {
    if (bfc_process_if_made())
        BFC_TELL_FEATURES(freed, arena, pointer, result, may_wait);
    return result;
}

static CUresult free_of_driver(const struct bfc_driver *driver, CUdeviceptr pointer) {
    bfc_segment_count_forwarded_free(pointer ? BFC_FORWARD_FOREIGN : BFC_FORWARD_BAD_CALL);
    return note_forwarded_free(pointer, driver->cuMemFree_v2(pointer));
}

static CUresult free_async_of_driver(const struct bfc_driver *driver, CUdeviceptr pointer,
                                     CUstream stream, bool per_thread) {
    CUresult result = per_thread ? driver->cuMemFreeAsync_ptsz(pointer, stream)
                                 : driver->cuMemFreeAsync(pointer, stream);
    return note_forwarded_free(pointer, result);
}

static CUresult free_of_arena(const struct bfc_driver *driver, struct bfc_arena *arena,
                              CUdeviceptr pointer) {
    uint64_t start = bfc_events_free_start();
    uint64_t attributed = bfc_exports_attributed(arena, pointer);
    CUresult result = bfc_reuse_free(driver, arena, pointer);
    return finish_free(arena, pointer, result, attributed, start);
}

/* A free that features may want to see, that may be of a block with attributes, or the driver's; or
 * that is not of the thread's last arena. */
static NOINLINE CUresult free_with_all_checks(CUdeviceptr pointer) {
    BFC_FIND_DRIVER(driver, cuMemFree_v2);
    if (answered.pointer && answered.pointer == pointer)
        return answered.result;
    tell_before_free(pointer, NULL);
    struct bfc_arena *arena = owner_of(pointer);
    CUresult result =
        arena ? free_of_arena(driver, arena, pointer) : free_of_driver(driver, pointer);
    return tell_of_free(arena, pointer, result, true);
}

CUresult bfc_free(CUdeviceptr pointer) {
    struct bfc_arena *arena;
    if (UNLIKELY(!bfc_process_is_usual() || bfc_block_attributes_exist() || bfc_captures_exist() ||
                 answered.pointer || !(arena = bfc_arena_if_last(pointer))))
        return free_with_all_checks(pointer);
    return bfc_reuse_free_by_mode(bfc_driver_found, arena, pointer);
}

bool bfc_free_hit(CUdeviceptr pointer, unsigned long long context, CUresult *result) {
    if (!bfc_process_is_usual() || bfc_block_attributes_exist() || bfc_captures_exist())
        return false;
    const struct bfc_driver *driver = bfc_driver_found;
    struct bfc_arena *arena = bfc_arena_last_if_holds(driver, context, pointer);
    if (!arena)
        return false;
    *result = bfc_reuse_free_in_current(driver, arena, pointer);
    return true;
}

void bfc_free_answered(CUdeviceptr pointer, CUresult result) {
    answered.pointer = pointer;
    answered.result = result;
}

CUresult bfc_free_async(const struct bfc_driver *driver, CUdeviceptr pointer, CUstream stream,
                        bool per_thread) {
    tell_before_free(pointer, stream);
    struct bfc_arena *arena = owner_of(pointer);
    if (!arena)
        return free_async_of_driver(driver, pointer, stream, per_thread);
    uint64_t start = bfc_events_free_start();
    uint64_t attributed = bfc_exports_attributed(arena, pointer);
    CUresult result = bfc_reuse_free_async(driver, arena, pointer, stream, per_thread);
    result = finish_free(arena, pointer, result, attributed, start);
    return tell_of_free(arena, pointer, result, false);
}

/* ---- host memory ---- */

/* Pooled memory is device memory, for which the driver answers that the value is invalid. */
CUresult bfc_free_host(const struct bfc_driver *driver, void *memory) {
    return owner_of((CUdeviceptr)memory) ? CUDA_ERROR_INVALID_VALUE : driver->cuMemFreeHost(memory);
}
