#include "interpose/reuse/free_modes.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/numbers.h"
#include "interpose/arena/arena.h"
#include "interpose/arena/upstream.h"
#include "interpose/config/options.h"
#include "interpose/context/contexts.h"
#include "interpose/driver/current.h"
#include "interpose/reuse/allocate.h"
#include "interpose/reuse/free_fence.h"
#include "interpose/reuse/free_while_capturing.h"
#include "interpose/stats/events.h"
#include "interpose/table/counter.h"

/* The first 64 host waits of a lane are timed, then only every 64th, because reading the clock
 * costs time. The duration of such a wait counts for 64 waits. */
enum { TIMED_WAITS = 64 };

static NOINLINE CUresult synchronize_timed(const struct bfc_driver *driver, struct bfc_arena *arena,
                                           uint64_t weight) {
    uint64_t before = bfc_now_ns();
    CUresult result = driver->cuCtxSynchronize();
    uint64_t ns = bfc_now_ns() - before;
    struct bfc_segment_pool *section = arena->stats.section;
    bfc_fetch_add_relaxed(&section->host_wait_ns, weight * ns);
    bfc_fetch_add_relaxed(&section->host_wait_latency[bfc_latency_bin(ns)], weight);
    return bfc_reuse_latch(arena, result);
}

/* Waits for all work of the current context, and counts the wait. */
static inline CUresult synchronize_current(const struct bfc_driver *driver,
                                           struct bfc_arena *arena) {
    uint64_t waits = bfc_events_count_wait(&arena->stats);
    if (UNLIKELY(waits <= TIMED_WAITS || waits % TIMED_WAITS == 0))
        return synchronize_timed(driver, arena, waits <= TIMED_WAITS ? 1 : TIMED_WAITS);
    return bfc_reuse_latch(arena, driver->cuCtxSynchronize());
}

static NOINLINE CUresult synchronize_other(const struct bfc_driver *driver, struct bfc_arena *arena,
                                           CUcontext context) {
    CUresult result = bfc_arena_is_itself(driver, arena) ? driver->cuCtxPushCurrent_v2(context)
                                                         : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (result != CUDA_SUCCESS)
        return result;
    result = synchronize_current(driver, arena);
    CUresult popped = bfc_current_pop(driver);
    return result != CUDA_SUCCESS ? result : popped;
}

/* Waits for all work of a context, whichever one is current. It is passed by address, and so read
 * only after the driver's call: until then no register needs to hold it. */
static inline CUresult synchronize_context(const struct bfc_driver *driver, struct bfc_arena *arena,
                                           const CUcontext *context) {
    CUcontext current = NULL;
    CUresult result = driver->cuCtxGetCurrent(&current);
    if (LIKELY(result == CUDA_SUCCESS && current == *context))
        return synchronize_current(driver, arena);
    return result != CUDA_SUCCESS ? result : synchronize_other(driver, arena, *context);
}

/* Waits for all work of the arena's context in a process that counts the calls which submit work
 * (BFC_GATE). If none was made since the last such wait, there is nothing to wait for. */
static NOINLINE CUresult wait_for_submissions(const struct bfc_driver *driver,
                                              struct bfc_arena *arena) {
    uint64_t submissions = 0;
    bool known = bfc_counter->count(&submissions);
    if (known && submissions == bfc_load_acquire(&arena->waited_for))
        return CUDA_SUCCESS;
    CUresult result = synchronize_context(driver, arena, &arena->context);
    if (known && result == CUDA_SUCCESS)
        bfc_store_release(&arena->waited_for, submissions);
    return result;
}

/* Waits for all work of the arena's context. `is_current`: the context is known to be current. */
static inline CUresult wait_for_work(const struct bfc_driver *driver, struct bfc_arena *arena,
                                     bool is_current) {
    if (UNLIKELY(bfc_counter))
        return wait_for_submissions(driver, arena);
    return is_current ? synchronize_current(driver, arena)
                      : synchronize_context(driver, arena, &arena->context);
}

/* Whether the pool could take as many bytes as it has ready from the device. */
static bool has_room(const struct bfc_driver *driver, struct bfc_arena *arena) {
    struct bfc_pool_stats stats;
    bool pushed;
    bfc_pool_read_stats(arena->pool, &stats);
    uint64_t reserved = bfc_add_saturating(stats.ready, bfc_load_relaxed(&arena->on->reserved));
    if (reserved > arena->limit || bfc_arena_make_current(driver, arena, &pushed) != CUDA_SUCCESS)
        return false;
    bfc_upstream_note_device_free(driver, arena);
    bfc_current_leave(driver, pushed);
    uint64_t free_bytes = bfc_load_relaxed(&arena->stats.section->device_free);
    return bfc_add_saturating(stats.ready, arena->left_to_others) <= free_bytes;
}

/* Whether regions may go back. Their free also waits for work that other threads have submitted
 * after the wait of this thread, and meanwhile no thread can use them. So they go back only if the
 * device has as much for other threads, or if the context has no such work. */
static bool can_spare_regions(const struct bfc_driver *driver, struct bfc_arena *arena) {
    enum { SOON_NS = 1000 * 1000 };
    bfc_fence fence;
    if (!arena->fences || has_room(driver, arena))
        return true;
    return bfc_reuse_record(driver, arena, &arena->context, 1, false, &fence) == CUDA_SUCCESS &&
           bfc_fences_wait(arena->fences, driver, fence, SOON_NS, NULL) >= fence;
}

/* Waits as wait_for_work does, and then gives idle regions back if the pool has too much memory. In
 * the other order no thread could use them during the wait. Spilled memory is left to `spill`. */
static NOINLINE CUresult wait_with_surplus(const struct bfc_driver *driver, struct bfc_arena *arena,
                                           bool is_current) {
    CUresult result = wait_for_work(driver, arena, is_current);
    if (result == CUDA_SUCCESS && !bfc_arena_is_host(arena) && bfc_pool_begin_surplus(arena->pool))
        bfc_pool_release_surplus(arena->pool, can_spare_regions(driver, arena));
    return result;
}

void bfc_reuse_give_back_surplus(const struct bfc_driver *driver, struct bfc_arena *arena,
                                 CUdeviceptr pointer) {
    if (bfc_arena_is_host(arena) || !bfc_pool_begin_surplus(arena->pool))
        return;
    bool is_live = bfc_pool_is_live(arena->pool, pointer);
    struct bfc_waits *waits = is_live ? bfc_capture_enter_wait() : NULL;
    bool waited = waits && wait_for_work(driver, arena, false) == CUDA_SUCCESS;
    bfc_pool_release_surplus(arena->pool, waited && can_spare_regions(driver, arena));
    if (waits)
        bfc_capture_leave_wait(waits);
}

static inline CUresult wait_before_free(const struct bfc_driver *driver, struct bfc_arena *arena,
                                        bool is_current) {
    return UNLIKELY(bfc_pool_has_surplus(arena->pool))
               ? wait_with_surplus(driver, arena, is_current)
               : wait_for_work(driver, arena, is_current);
}

/* The pool asks which fences are complete only when it finds no ready block. So at every 32nd fence
 * a free tells it. The driver is asked only if 32 fences are not known to be complete: usually the
 * program's own waits have shown that they are. */
enum { LOOK_EVERY = 32 };

/* Frees a block whose fence could not be recorded. The reason may be a peer that has ended by a
 * call without a hook: bfc_contexts_review forgets it, so that the next fence can be recorded. */
static NOINLINE CUresult free_refused(const struct bfc_driver *driver, struct bfc_arena *arena,
                                      CUdeviceptr pointer, CUresult result) {
    if (!bfc_reuse_is_passing(result))
        return result;
    if (bfc_peers_known())
        bfc_contexts_review(driver);
    return bfc_reuse_free_unfenced(driver, arena, pointer);
}

static NOINLINE void look_at_fences(const struct bfc_driver *driver, struct bfc_arena *arena,
                                    bfc_fence last) {
    bfc_fence complete = bfc_fences_known(arena->fences);
    if (complete + LOOK_EVERY <= last)
        complete = bfc_fences_poll(arena->fences, driver);
    bfc_pool_complete(arena->pool, complete);
    BFC_TELL_COUNTER(fences_complete(arena->sequence, complete));
}

/* Records a fence in the contexts, and frees the block, which is pending until that fence is
 * complete. `*fence` is BFC_NO_FENCE if none could be recorded. */
static CUresult free_fenced(const struct bfc_driver *driver, struct bfc_arena *arena,
                            CUdeviceptr pointer, const CUcontext *contexts, size_t count,
                            bfc_fence *fence) {
    CUresult result = bfc_reuse_record(driver, arena, contexts, count, false, fence);
    if (UNLIKELY(result != CUDA_SUCCESS)) {
        *fence = BFC_NO_FENCE;
        return free_refused(driver, arena, pointer, result);
    }
    if (*fence % LOOK_EVERY == 0)
        look_at_fences(driver, arena, *fence);
    return bfc_reuse_take_back(arena, pointer, *fence);
}

static CUresult wait_for_peers(const struct bfc_driver *driver, struct bfc_arena *arena,
                               const CUcontext *peers, size_t count) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = synchronize_context(driver, arena, &peers[i]);
    if (bfc_reuse_is_of_peer(driver, arena, result))
        result = CUDA_SUCCESS;
    return result;
}

/* Frees a block after the host has waited for the block's own context. If peers may still use it,
 * it is pending until their work is complete; without fences the host waits for that work. */
static NOINLINE CUresult free_of_peers(const struct bfc_driver *driver, struct bfc_arena *arena,
                                       CUdeviceptr pointer) {
    CUcontext peers[BFC_FENCE_CONTEXTS];
    size_t count = bfc_reuse_contexts_of(arena, false, peers);
    if (count == 0)
        return bfc_reuse_take_back(arena, pointer, BFC_NO_FENCE);
    bfc_fence fence;
    if (arena->fences)
        return free_fenced(driver, arena, pointer, peers, count, &fence);
    struct bfc_waits *waits = bfc_capture_enter_wait();
    if (!waits)
        return bfc_reuse_free_unfenced(driver, arena, pointer);
    CUresult result = wait_for_peers(driver, arena, peers, count);
    bfc_capture_leave_wait(waits);
    return result == CUDA_SUCCESS ? bfc_reuse_take_back(arena, pointer, BFC_NO_FENCE) : result;
}

static inline CUresult free_waited_for(const struct bfc_driver *driver, struct bfc_arena *arena,
                                       CUdeviceptr pointer, struct bfc_glimpse seen) {
    if (bfc_peers_known())
        return free_of_peers(driver, arena, pointer);
    if (LIKELY(bfc_pool_free_ready(arena->pool, pointer, seen) == BFC_OK))
        return CUDA_SUCCESS;
    return CUDA_ERROR_INVALID_VALUE;
}

/* Frees in a process that has begun a capture before: waits for an event that covers the context.
 * Unlike a wait for the context itself, this does no harm to a capture that begins meanwhile. If no
 * such event can be recorded, the thread waits as the driver's own free does. */
static NOINLINE CUresult free_after_fence(const struct bfc_driver *driver, struct bfc_arena *arena,
                                          CUdeviceptr pointer, struct bfc_glimpse seen) {
    bfc_fence fence;
    CUresult result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (arena->fences)
        result = bfc_reuse_record(driver, arena, &arena->context, 1, false, &fence);
    if (bfc_reuse_is_passing(result))
        return bfc_reuse_free_unfenced(driver, arena, pointer);
    if (result != CUDA_SUCCESS)
        return result;
    bfc_events_count_wait(&arena->stats);
    CUstreamCaptureMode mode = bfc_capture_relax(driver);
    result = bfc_reuse_latch(arena, bfc_fences_synchronize(arena->fences, driver, fence));
    bfc_capture_restore(driver, mode);
    return result == CUDA_SUCCESS ? free_waited_for(driver, arena, pointer, seen) : result;
}

/* Returns the error for the free of an address at which no live block begins: the driver's own
 * error if the driver has exited. */
static NOINLINE CUresult refuse_pointer(const struct bfc_driver *driver, struct bfc_arena *arena,
                                        CUdeviceptr pointer) {
    CUcontext context;
    CUresult result = driver->cuCtxGetCurrent(&context);
    if (result != CUDA_SUCCESS)
        return result;
    bfc_pool_count_invalid_free(arena->pool, pointer);
    return CUDA_ERROR_INVALID_VALUE;
}

static inline CUresult free_with_wait(const struct bfc_driver *driver, struct bfc_arena *arena,
                                      CUdeviceptr pointer) {
    /* If no live block begins at the address, the free fails without a wait, as in the driver. A
     * wait might never end, since the work may depend on what this thread does next. */
    struct bfc_glimpse seen = bfc_pool_glimpse(arena->pool, pointer);
    if (UNLIKELY(!seen.block))
        return refuse_pointer(driver, arena, pointer);
    struct bfc_waits *waits = bfc_capture_enter_wait();
    if (UNLIKELY(!waits))
        return free_after_fence(driver, arena, pointer, seen);
    CUresult result = wait_before_free(driver, arena, false);
    bfc_capture_leave_wait(waits);
    if (UNLIKELY(result != CUDA_SUCCESS))
        return result;
    return free_waited_for(driver, arena, pointer, seen);
}

CUresult bfc_reuse_free_fenced(const struct bfc_driver *driver, struct bfc_arena *arena,
                               CUdeviceptr pointer, bfc_fence *fence) {
    return free_fenced(driver, arena, pointer, &arena->context, 1, fence);
}

CUresult bfc_reuse_free_with_fence(const struct bfc_driver *driver, struct bfc_arena *arena,
                                   CUdeviceptr pointer) {
    CUcontext contexts[BFC_FENCE_CONTEXTS];
    size_t count = bfc_reuse_contexts_of(arena, true, contexts);
    bfc_fence fence;
    return free_fenced(driver, arena, pointer, contexts, count, &fence);
}

static inline CUresult free_with_fence(const struct bfc_driver *driver, struct bfc_arena *arena,
                                       CUdeviceptr pointer) {
    if (bfc_peers_known())
        return bfc_reuse_free_with_fence(driver, arena, pointer);
    if (UNLIKELY(bfc_counter))
        return bfc_counter->free(driver, arena, pointer);
    bfc_fence fence;
    return free_fenced(driver, arena, pointer, &arena->context, 1, &fence);
}

static inline CUresult free_by_mode(const struct bfc_driver *driver, struct bfc_arena *arena,
                                    CUdeviceptr pointer) {
    return arena->free_mode == BFC_FREE_SYNC ? free_with_wait(driver, arena, pointer)
                                             : free_with_fence(driver, arena, pointer);
}

/* The context has ended by a call without a hook, so the driver may have given its addresses to
 * another context. Frees the address for the arena or driver that has it now. */
static CUresult free_of_ended(const struct bfc_driver *driver, const struct bfc_arena *ended,
                              CUdeviceptr pointer) {
    bfc_arena_lose(ended);
    bfc_contexts_review(driver);
    struct bfc_arena *arena = bfc_arena_living_of(pointer);
    return arena ? bfc_reuse_free(driver, arena, pointer) : driver->cuMemFree_v2(pointer);
}

static NOINLINE CUresult tell_of_failure(struct bfc_arena *arena, CUdeviceptr pointer,
                                         CUresult result) {
    const struct bfc_driver *driver = bfc_driver();
    if (!bfc_arena_is_itself(driver, arena)) {
        bool by_hook = bfc_load_acquire(&arena->ended); /* whether a hook saw the end */
        return by_hook && result == CUDA_ERROR_CONTEXT_IS_DESTROYED
                   ? result
                   : free_of_ended(driver, arena, pointer);
    }
    if (result == CUDA_ERROR_INVALID_VALUE)
        bfc_events_add_landmark(&arena->stats, BFC_EVENT_INVALID_FREE, pointer, 0);
    return result;
}

static inline CUresult note_free(struct bfc_arena *arena, CUdeviceptr pointer, CUresult result,
                                 uint64_t start) {
    if (UNLIKELY(result != CUDA_SUCCESS))
        return tell_of_failure(arena, pointer, result);
    bfc_events_add_free(&arena->stats, pointer, start);
    return result;
}

/* A free whose time is measured. It is a function of its own, so that other frees need not carry
 * the start time along. */
static NOINLINE CUresult free_timed(const struct bfc_driver *driver, struct bfc_arena *arena,
                                    CUdeviceptr pointer) {
    uint64_t start = bfc_events_clock(BFC_TIMED_FREES);
    return note_free(arena, pointer, free_by_mode(driver, arena, pointer), start);
}

static NOINLINE CUresult free_with_wait_untimed(const struct bfc_driver *driver,
                                                struct bfc_arena *arena, CUdeviceptr pointer) {
    return note_free(arena, pointer, free_with_wait(driver, arena, pointer), 0);
}

static NOINLINE CUresult free_with_fence_untimed(const struct bfc_driver *driver,
                                                 struct bfc_arena *arena, CUdeviceptr pointer) {
    return note_free(arena, pointer, free_with_fence(driver, arena, pointer), 0);
}

CUresult bfc_reuse_free_by_mode(const struct bfc_driver *driver, struct bfc_arena *arena,
                                CUdeviceptr pointer) {
    if (bfc_events_is_timed(BFC_TIMED_FREES))
        return free_timed(driver, arena, pointer);
    return arena->free_mode == BFC_FREE_SYNC ? free_with_wait_untimed(driver, arena, pointer)
                                             : free_with_fence_untimed(driver, arena, pointer);
}

CUresult bfc_reuse_free_in_current(const struct bfc_driver *driver, struct bfc_arena *arena,
                                   CUdeviceptr pointer) {
    if (arena->free_mode != BFC_FREE_SYNC)
        return bfc_reuse_free_by_mode(driver, arena, pointer);
    struct bfc_glimpse seen = bfc_pool_glimpse(arena->pool, pointer);
    if (UNLIKELY(!seen.block))
        return bfc_reuse_free_by_mode(driver, arena, pointer);
    struct bfc_waits *waits = bfc_capture_enter_wait();
    if (UNLIKELY(!waits))
        return bfc_reuse_free_by_mode(driver, arena, pointer);
    uint64_t start = bfc_events_start(BFC_TIMED_FREES);
    CUresult result = wait_before_free(driver, arena, true);
    bfc_capture_leave_wait(waits);
    if (LIKELY(result == CUDA_SUCCESS))
        result = free_waited_for(driver, arena, pointer, seen);
    return note_free(arena, pointer, result, start);
}

CUresult bfc_reuse_free(const struct bfc_driver *driver, struct bfc_arena *arena,
                        CUdeviceptr pointer) {
    enum bfc_capture_state state = bfc_capture_state(driver);
    return state == BFC_CAPTURE_NONE
               ? free_by_mode(driver, arena, pointer)
               : bfc_reuse_free_while_capturing(driver, arena, pointer, state);
}
