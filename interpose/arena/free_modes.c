/* The three modes of free. */
#include "interpose/arena/free_modes.h"

#include <time.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "interpose/arena/fences.h"
#include "interpose/arena/stream_frees.h"
#include "interpose/arena/upstream.h"
#include "interpose/config/process.h"
#include "interpose/context/capture.h"
#include "interpose/context/green.h"
#include "interpose/context/peers.h"
#include "interpose/driver/current.h"
#include "interpose/stats/events.h"

/* ---- errors ---- */

static NOINLINE void latch_fatal(struct bfc_arena *arena, CUresult result) {
    if (!bfc_is_fatal(result))
        return;
    __atomic_store_n(&arena->fatal, (int)result, __ATOMIC_RELAXED);
    __atomic_store_n(&arena->plain_most, 0, __ATOMIC_RELAXED);
}

static inline CUresult latch(struct bfc_arena *arena, CUresult result) {
    if (UNLIKELY(result != CUDA_SUCCESS))
        latch_fatal(arena, result);
    return result;
}

/*
 * A refusal that has to do with our own call alone, where the program's would do: a capture that no
 * hook saw, or that began since; a want of memory. The block must then wait for a better moment.
 */
static bool is_passing(CUresult result) {
    return bfc_is_capture_error(result) || result == CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- waiting on the host ---- */

/* Of a lane's waits so many are timed at first, then one in so many, which stands for all of them.
 */
enum { TIMED_WAITS = 64 };

static NOINLINE CUresult synchronize_timed(const struct bfc_driver *driver, struct bfc_arena *arena,
                                           uint64_t weight) {
    uint64_t before = bfc_now_ns();
    CUresult result = driver->cuCtxSynchronize();
    __atomic_fetch_add(&arena->stats.section->host_wait_ns, weight * (bfc_now_ns() - before),
                       __ATOMIC_RELAXED);
    return result;
}

/* Waits for the current context, and counts it. */
static inline CUresult synchronize_current(const struct bfc_driver *driver,
                                           struct bfc_arena *arena) {
    CUresult result;
    uint64_t waits = bfc_observe_wait(&arena->stats);
    if (UNLIKELY(waits < TIMED_WAITS || waits % TIMED_WAITS == 0))
        result = synchronize_timed(driver, arena, waits < TIMED_WAITS ? 1 : TIMED_WAITS);
    else
        result = driver->cuCtxSynchronize();
    return latch(arena, result);
}

static NOINLINE CUresult synchronize_other(const struct bfc_driver *driver, struct bfc_arena *arena,
                                           CUcontext context) {
    CUresult result = driver->cuCtxPushCurrent_v2(context);
    if (result != CUDA_SUCCESS)
        return result;
    result = synchronize_current(driver, arena);
    CUresult popped = bfc_pop_context(driver);
    return result != CUDA_SUCCESS ? result : popped;
}

/* Waits for all work of a context, whichever one is the thread's current one. */
static inline CUresult synchronize(const struct bfc_driver *driver, struct bfc_arena *arena,
                                   CUcontext context) {
    CUcontext current = NULL;
    CUresult result = driver->cuCtxGetCurrent(&current);
    if (LIKELY(result == CUDA_SUCCESS && current == context))
        return synchronize_current(driver, arena);
    return result != CUDA_SUCCESS ? result : synchronize_other(driver, arena, context);
}

/* ---- recording fences ---- */

/* Contexts that one fence can cover: the owner and its peers. */
enum { FENCE_CONTEXTS = BFC_PEERS_MOST + 1 };

static void raise_to(bfc_fence *field, bfc_fence fence) {
    bfc_fence before = __atomic_load_n(field, __ATOMIC_SEQ_CST);
    while (before < fence && !__atomic_compare_exchange_n(field, &before, fence, false,
                                                          __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
}

/*
 * Records a fence in `contexts`. A fence over more than the owner's context, or later than its
 * free, holds ordered reuse back until it is complete: `lazy_until`.
 */
static inline CUresult record(const struct bfc_driver *driver, struct bfc_arena *arena,
                              const CUcontext *contexts, size_t count, bool late,
                              bfc_fence *fence) {
    CUstreamCaptureMode mode = bfc_capture_relax(driver);
    CUresult result = bfc_fences_record(arena->fences, driver, contexts, count, fence);
    bfc_capture_restore(driver, mode);
    bool peers = count > 1 || contexts[0] != arena->context;
    if (result == CUDA_SUCCESS && (late || peers))
        raise_to(&arena->lazy_until, *fence);
    /* A peer that has just ended: it is none any more at the next moment. */
    if (peers &&
        (result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_CONTEXT))
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return latch(arena, result);
}

/* The block's own context, if `owner`, and those with access to its memory. */
static size_t contexts_of(struct bfc_arena *arena, bool owner, CUcontext contexts[FENCE_CONTEXTS]) {
    size_t count = 0;
    if (owner)
        contexts[count++] = arena->context;
    return count + bfc_peers_of(arena->context, contexts + count);
}

static bool has_peers(struct bfc_arena *arena) {
    CUcontext peers[FENCE_CONTEXTS];
    return contexts_of(arena, false, peers) > 0;
}

static CUresult defer_block(struct bfc_arena *arena, CUdeviceptr pointer) {
    if (bfc_pool_free(arena->pool, pointer, BFC_DEFERRED_FENCE) != BFC_OK)
        return CUDA_ERROR_INVALID_VALUE;
    __atomic_store_n(&arena->has_deferred, true, __ATOMIC_SEQ_CST);
    return CUDA_SUCCESS;
}

/*
 * Gives what is deferred a fence, if nothing captures. What came there before the fence was
 * recorded had done its work by then: the fence covers it. What comes meanwhile stays for the next
 * time.
 */
static void fence_deferred(const struct bfc_driver *driver, struct bfc_arena *arena) {
    CUcontext contexts[FENCE_CONTEXTS];
    bfc_fence fence;
    if (!__atomic_load_n(&arena->has_deferred, __ATOMIC_SEQ_CST) || !arena->fences ||
        !bfc_gate_enter())
        return;
    __atomic_store_n(&arena->has_deferred, false, __ATOMIC_SEQ_CST);
    size_t count = contexts_of(arena, true, contexts);
    uint64_t arrivals = bfc_pool_deferred_arrivals(arena->pool);
    if (record(driver, arena, contexts, count, true, &fence) == CUDA_SUCCESS)
        bfc_pool_fence_deferred(arena->pool, fence, arrivals);
    else
        __atomic_store_n(&arena->has_deferred, true, __ATOMIC_SEQ_CST);
    bfc_gate_leave();
}

void bfc_reuse_after_captures(const struct bfc_driver *driver) {
    struct bfc_arena *arena = NULL;
    while ((arena = bfc_arena_next(arena)))
        fence_deferred(driver, arena);
}

/* ---- the pool's questions ---- */

/*
 * Waits, as the driver's own free does, for the work that what is deferred may still be used by.
 * That covers the owner alone: of a context with peers, whole regions go back to the driver. For a
 * thread that may free.
 */
static CUresult clear_deferred(const struct bfc_driver *driver, struct bfc_arena *arena) {
    uint64_t arrivals = bfc_pool_deferred_arrivals(arena->pool);
    if (has_peers(arena)) {
        bfc_pool_trim_used(arena->pool, UINT64_MAX);
        return CUDA_SUCCESS;
    }
    CUresult result = latch(arena, bfc_upstream_wait_as_free(driver, arena));
    if (result == CUDA_SUCCESS)
        bfc_pool_fence_deferred(arena->pool, BFC_NO_FENCE, arrivals);
    return result;
}

/* By fences where they can be had. */
static void settle_deferred(const struct bfc_driver *driver, struct bfc_arena *arena) {
    fence_deferred(driver, arena);
    if (__atomic_load_n(&arena->has_deferred, __ATOMIC_SEQ_CST) &&
        bfc_capture_state(driver) != BFC_CAPTURE_BARRED)
        clear_deferred(driver, arena);
}

static bfc_fence poll_fences(const struct bfc_driver *driver, struct bfc_arena *arena) {
    return arena->fences ? bfc_fences_poll(arena->fences, driver) : BFC_NO_FENCE;
}

bfc_fence bfc_reuse_poll(void *context) {
    struct bfc_arena *arena = context;
    const struct bfc_driver *driver = bfc_driver();
    fence_deferred(driver, arena);
    bfc_stream_frees_poll(driver, arena);
    return poll_fences(driver, arena);
}

bfc_fence bfc_reuse_wait(void *context, bfc_fence fence, uint64_t timeout_ns) {
    struct bfc_arena *arena = context;
    const struct bfc_driver *driver = bfc_driver();
    CUresult error = CUDA_SUCCESS;
    if (fence == BFC_DEFERRED_FENCE)
        settle_deferred(driver, arena);
    else if (fence == BFC_NO_FENCE)
        bfc_stream_frees_wait(driver, arena, timeout_ns);
    else
        fence_deferred(driver, arena);
    if (!arena->fences || fence == BFC_DEFERRED_FENCE || fence == BFC_NO_FENCE)
        return poll_fences(driver, arena);
    bfc_fence complete = bfc_fences_wait(arena->fences, driver, fence, timeout_ns, &error);
    latch(arena, error);
    return complete;
}

/* A look settles a bounded number: it is repeated as long as it finds more. */
void bfc_reuse_settle(struct bfc_arena *arena) {
    bfc_fence complete = BFC_NO_FENCE, before;
    if (!bfc_arena_enter(arena))
        return;
    while (bfc_stream_frees_poll(bfc_driver(), arena))
        ;
    do {
        before = complete;
        complete = bfc_reuse_poll(arena);
    } while (complete > before);
    bfc_arena_leave(arena);
    bfc_pool_complete(arena->pool, complete);
}

/* ---- allocating ---- */

/* Ordered reuse falls to the host: rare, and out of the way. */
static NOINLINE void log_fallen_back(const struct bfc_arena *arena, const char *why) {
    static unsigned seen;
    bfc_log_repeated(BFC_LOG_DEBUG, &seen,
                     "device %d, context %llu: pending memory is not reused now: %s",
                     (int)arena->device, arena->id, why);
}

/* While a fence stands that must be waited for on the host: has it been completed meanwhile? */
static NOINLINE void look_at_lazy(const struct bfc_driver *driver, struct bfc_arena *arena,
                                  bfc_fence until) {
    /* Should it have risen meanwhile, it stays; the next call sees it. */
    if (bfc_fences_poll(arena->fences, driver) >= until)
        __atomic_compare_exchange_n(&arena->lazy_until, &until, BFC_NO_FENCE, false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    else
        log_fallen_back(arena, "a fence over peers' work, or later than its free, is not complete");
}

/*
 * Whether pending blocks may be handed out at once, and ordered behind their fences on the device.
 * With peer access, too, there are several contexts.
 */
static inline bool may_reorder(struct bfc_arena *arena) {
    return !bfc_contexts_are_several() &&
           __atomic_load_n(&arena->lazy_until, __ATOMIC_SEQ_CST) == BFC_NO_FENCE;
}

/* Whether another context has come about unseen, or may have; one that is found is known then. */
static NOINLINE bool has_company(const struct bfc_driver *driver) {
    bool unknown;
    CUcontext found = bfc_contexts_search(driver, &unknown);
    if (found)
        bfc_reuse_context_found(driver, found);
    return unknown || found;
}

static inline bool wants_pending(const struct bfc_driver *driver, struct bfc_arena *arena) {
    if (arena->free_mode != BFC_FREE_ORDERED)
        return false;
    bfc_fence until = __atomic_load_n(&arena->lazy_until, __ATOMIC_SEQ_CST);
    if (UNLIKELY(until != BFC_NO_FENCE))
        look_at_lazy(driver, arena, until);
    return may_reorder(arena);
}

/*
 * A pending block is announced before it is looked once more whether it may be: a thread that makes
 * another context does the two the other way round, so one of the two sees the other. It
 * waits for what was announced, so that must not be a fence which only the host may wait for: hence
 * the look before; the block's own fence cannot become one later. Then the context's later work is
 * made to wait for the block's fence. False without an error: not this one, and none that is
 * pending.
 */
static inline bool keep_pending(const struct bfc_driver *driver, struct bfc_arena *arena,
                                const struct bfc_block_info *block, CUresult *result) {
    struct bfc_order order;
    CUstreamCaptureMode mode = bfc_capture_relax(driver);
    bool kept = may_reorder(arena) && !(bfc_contexts_hide() && has_company(driver)) &&
                bfc_fences_announce(arena->fences, block->fence, &order);
    if (kept && !may_reorder(arena)) {
        bfc_fences_retract(arena->fences, &order);
        kept = false;
    }
    if (kept)
        *result = bfc_fences_order(arena->fences, driver, arena->context, &order);
    bfc_capture_restore(driver, mode);
    if (LIKELY(kept && *result == CUDA_SUCCESS))
        return true;
    latch(arena, *result);
    log_fallen_back(arena, *result == CUDA_SUCCESS ? "the device cannot order this block, or there "
                                                     "may be another context"
                                                   : "the driver refused a wait on the device");
    bfc_pool_free(arena->pool, block->start, block->fence);
    if (is_passing(*result))
        *result = CUDA_SUCCESS;
    return false;
}

CUresult bfc_reuse_allocate(const struct bfc_driver *driver, struct bfc_arena *arena, size_t bytes,
                            enum bfc_reuse_how how, CUdeviceptr *pointer, enum bfc_status *status) {
    struct bfc_block_info block;
    CUresult result = (CUresult)__atomic_load_n(&arena->fatal, __ATOMIC_RELAXED);
    *status = BFC_OK;
    if (result != CUDA_SUCCESS)
        return result;
    unsigned base = how == BFC_REUSE_THERE ? BFC_ALLOCATE_HIT_ONLY : 0;
    unsigned pending =
        how != BFC_REUSE_READY && wants_pending(driver, arena) ? BFC_ALLOCATE_PENDING : 0;
    for (;;) {
        *status = bfc_pool_allocate(arena->pool, bytes, base | pending, &block);
        if (*status != BFC_OK)
            return CUDA_ERROR_OUT_OF_MEMORY;
        if (block.fence == BFC_NO_FENCE || keep_pending(driver, arena, &block, &result))
            break;
        if (result != CUDA_SUCCESS)
            return result;
        pending = 0;
    }
    *pointer = block.start;
    return CUDA_SUCCESS;
}

/* ---- freeing ---- */

static CUresult take_back(struct bfc_arena *arena, CUdeviceptr pointer, bfc_fence fence) {
    return bfc_pool_free(arena->pool, pointer, fence) == BFC_OK ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_VALUE;
}

static bool is_live(struct bfc_arena *arena, CUdeviceptr pointer) {
    struct bfc_block_info block;
    return bfc_pool_find(arena->pool, pointer, &block) && block.live && block.start == pointer;
}

/*
 * The second of two frees fails at once. Where the first may have been in the order of a stream,
 * other work goes on as if nothing had happened, and may be waited for in vain.
 */
static inline bool is_freed_already(struct bfc_arena *arena, CUdeviceptr pointer) {
    return UNLIKELY(__atomic_load_n(&arena->frees_in_streams, __ATOMIC_RELAXED)) &&
           !is_live(arena, pointer);
}

/* Fences after which what is complete is looked up: the pool asks only when it finds nothing ready.
 */
enum { LOOK_EVERY = 32 };

/*
 * Waits as the driver's own free does, and returns its error: then the block stays the program's.
 * What is left is what peers may do with the block, for which the driver's would not wait. Where
 * nothing can be waited with, or with what is not promised to wait, the block waits too.
 */
static CUresult free_as_driver(const struct bfc_driver *driver, struct bfc_arena *arena,
                               CUdeviceptr pointer) {
    if (!is_live(arena, pointer))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = latch(arena, bfc_upstream_wait_as_free(driver, arena));
    bool waited = result == CUDA_SUCCESS;
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        result = latch(arena, bfc_upstream_wait_weakly(driver, arena));
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY)
        return result;
    return waited && !has_peers(arena) ? take_back(arena, pointer, BFC_NO_FENCE)
                                       : defer_block(arena, pointer);
}

/* The host waits for what is deferred only when that is much. */
static CUresult free_deferring(const struct bfc_driver *driver, struct bfc_arena *arena,
                               CUdeviceptr pointer) {
    CUresult result = defer_block(arena, pointer);
    if (__atomic_load_n(&arena->stats.section->stats.deferred, __ATOMIC_RELAXED) >
        arena->pending_budget)
        clear_deferred(driver, arena);
    return result;
}

/* Something captures, so nothing may be recorded; but this thread may free. */
static NOINLINE CUresult free_unfenced(const struct bfc_driver *driver, struct bfc_arena *arena,
                                       CUdeviceptr pointer) {
    return arena->free_mode == BFC_FREE_SYNC ? free_as_driver(driver, arena, pointer)
                                             : free_deferring(driver, arena, pointer);
}

/* Records a fence in the contexts, and takes the block back under the fence. */
static inline CUresult free_fenced(const struct bfc_driver *driver, struct bfc_arena *arena,
                                   CUdeviceptr pointer, const CUcontext *contexts, size_t count) {
    bfc_fence fence;
    CUresult result = record(driver, arena, contexts, count, false, &fence);
    if (UNLIKELY(result != CUDA_SUCCESS))
        return is_passing(result) ? free_unfenced(driver, arena, pointer) : result;
    if (fence % LOOK_EVERY == 0)
        bfc_pool_complete(arena->pool, bfc_fences_poll(arena->fences, driver));
    return take_back(arena, pointer, fence);
}

/*
 * Waits for an event that covers the context: unlike a wait by context it does no harm to a capture
 * that begins meanwhile. `captured`: something captures by now, so not.
 */
static NOINLINE CUresult wait_for_fence(const struct bfc_driver *driver, struct bfc_arena *arena,
                                        bool *captured) {
    bfc_fence fence;
    CUresult result = record(driver, arena, &arena->context, 1, false, &fence);
    if ((*captured = is_passing(result)))
        return CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        return result;
    bfc_observe_wait(&arena->stats);
    CUstreamCaptureMode mode = bfc_capture_relax(driver);
    result = latch(arena, bfc_fences_synchronize(arena->fences, driver, fence));
    bfc_capture_restore(driver, mode);
    return result;
}

/* Waits for the block's context. */
static inline CUresult wait_for_owner(const struct bfc_driver *driver, struct bfc_arena *arena,
                                      bool *captured) {
    *captured = false;
    if (UNLIKELY(!arena->fences))
        return synchronize(driver, arena, arena->context);
    struct bfc_waits *waits = bfc_capture_enter_wait();
    if (UNLIKELY(!waits))
        return wait_for_fence(driver, arena, captured);
    CUresult result = synchronize(driver, arena, arena->context);
    bfc_capture_leave_wait(waits);
    return result;
}

static CUresult wait_for_peers(const struct bfc_driver *driver, struct bfc_arena *arena,
                               const CUcontext *peers, size_t count) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = synchronize(driver, arena, peers[i]);
    return result;
}

/* The owner was waited for; its peers' work is what the block is still pending with. */
static NOINLINE CUresult free_of_peers(const struct bfc_driver *driver, struct bfc_arena *arena,
                                       CUdeviceptr pointer) {
    CUcontext peers[FENCE_CONTEXTS];
    size_t count = contexts_of(arena, false, peers);
    if (count == 0)
        return take_back(arena, pointer, BFC_NO_FENCE);
    if (arena->fences)
        return free_fenced(driver, arena, pointer, peers, count);
    CUresult result = wait_for_peers(driver, arena, peers, count);
    return result == CUDA_SUCCESS ? take_back(arena, pointer, BFC_NO_FENCE) : result;
}

static inline CUresult free_waited_for(const struct bfc_driver *driver, struct bfc_arena *arena,
                                       CUdeviceptr pointer) {
    return bfc_peers_known() ? free_of_peers(driver, arena, pointer)
                             : take_back(arena, pointer, BFC_NO_FENCE);
}

static inline CUresult free_with_wait(const struct bfc_driver *driver, struct bfc_arena *arena,
                                      CUdeviceptr pointer) {
    bool captured;
    if (is_freed_already(arena, pointer))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = wait_for_owner(driver, arena, &captured);
    if (UNLIKELY(captured))
        return free_unfenced(driver, arena, pointer);
    return UNLIKELY(result != CUDA_SUCCESS) ? result : free_waited_for(driver, arena, pointer);
}

static NOINLINE CUresult free_with_fence_of_peers(const struct bfc_driver *driver,
                                                  struct bfc_arena *arena, CUdeviceptr pointer) {
    CUcontext contexts[FENCE_CONTEXTS];
    size_t count = contexts_of(arena, true, contexts);
    return free_fenced(driver, arena, pointer, contexts, count);
}

static inline CUresult free_with_fence(const struct bfc_driver *driver, struct bfc_arena *arena,
                                       CUdeviceptr pointer) {
    return bfc_peers_known() ? free_with_fence_of_peers(driver, arena, pointer)
                             : free_fenced(driver, arena, pointer, &arena->context, 1);
}

/*
 * As the driver answers an equally barred call; CUDA_SUCCESS if it was not barred after all. Where
 * memory is lacking it was not barred; but it is asked more than once, lest a refusal of the moment
 * let a free through.
 */
static CUresult ask_whether_barred(const struct bfc_driver *driver) {
    enum { TRIES = 3 };
    CUdeviceptr probe;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    for (int i = 0; i < TRIES && result == CUDA_ERROR_OUT_OF_MEMORY; i++)
        result = driver->cuMemAlloc_v2(&probe, 1);
    if (result == CUDA_SUCCESS)
        driver->cuMemFree_v2(probe);
    return result == CUDA_ERROR_OUT_OF_MEMORY ? CUDA_SUCCESS : result;
}

static inline CUresult free_by_mode(const struct bfc_driver *driver, struct bfc_arena *arena,
                                    CUdeviceptr pointer) {
    return arena->free_mode == BFC_FREE_SYNC ? free_with_wait(driver, arena, pointer)
                                             : free_with_fence(driver, arena, pointer);
}

static inline CUresult tell_of_free(struct bfc_arena *arena, CUdeviceptr pointer, uint64_t start,
                                    CUresult result) {
    if (LIKELY(result == CUDA_SUCCESS))
        bfc_observe_free(&arena->stats, pointer, start);
    else if (result == CUDA_ERROR_INVALID_VALUE)
        bfc_observe_landmark(&arena->stats, BFC_EVENT_INVALID_FREE, pointer, 0);
    return result;
}

CUresult bfc_reuse_free_by_mode(const struct bfc_driver *driver, struct bfc_arena *arena,
                                CUdeviceptr pointer) {
    uint64_t start = bfc_observe_free_start();
    return tell_of_free(arena, pointer, start, free_by_mode(driver, arena, pointer));
}

CUresult bfc_reuse_free_in_current(const struct bfc_driver *driver, struct bfc_arena *arena,
                                   CUdeviceptr pointer) {
    if (arena->free_mode != BFC_FREE_SYNC || !arena->fences ||
        UNLIKELY(__atomic_load_n(&arena->frees_in_streams, __ATOMIC_RELAXED)))
        return bfc_reuse_free_by_mode(driver, arena, pointer);
    struct bfc_waits *waits = bfc_capture_enter_wait();
    if (UNLIKELY(!waits))
        return bfc_reuse_free_by_mode(driver, arena, pointer);
    uint64_t start = bfc_observe_free_start();
    CUresult result = synchronize_current(driver, arena);
    bfc_capture_leave_wait(waits);
    if (LIKELY(result == CUDA_SUCCESS))
        result = free_waited_for(driver, arena, pointer);
    return tell_of_free(arena, pointer, start, result);
}

static CUresult free_while_capturing(const struct bfc_driver *driver, struct bfc_arena *arena,
                                     CUdeviceptr pointer, enum bfc_capture_state state) {
    if (state == BFC_CAPTURE_BARRED) {
        CUresult result = ask_whether_barred(driver);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return free_unfenced(driver, arena, pointer);
}

CUresult bfc_reuse_free(const struct bfc_driver *driver, struct bfc_arena *arena,
                        CUdeviceptr pointer) {
    enum bfc_capture_state state = bfc_capture_state(driver);
    return state == BFC_CAPTURE_NONE ? free_by_mode(driver, arena, pointer)
                                     : free_while_capturing(driver, arena, pointer, state);
}

/* ---- freeing in stream order ---- */

static struct bfc_stream_calls stream_calls(const struct bfc_driver *driver, bool per_thread) {
    if (per_thread)
        return (struct bfc_stream_calls){driver->cuStreamGetCtx_ptsz, driver->cuStreamGetId_ptsz,
                                         driver->cuStreamIsCapturing_ptsz,
                                         driver->cuEventRecord_ptsz,
                                         driver->cuStreamSynchronize_ptsz};
    return (struct bfc_stream_calls){driver->cuStreamGetCtx, driver->cuStreamGetId,
                                     driver->cuStreamIsCapturing, driver->cuEventRecord,
                                     driver->cuStreamSynchronize};
}

/* Of a driver that cannot record in a stream: before CUDA 9.2. */
static CUresult free_after_stream(const struct bfc_driver *driver, struct bfc_arena *arena,
                                  CUdeviceptr pointer, const struct bfc_stream_calls *calls,
                                  CUstream stream) {
    CUresult result = calls->synchronize ? calls->synchronize(stream) : CUDA_SUCCESS;
    return result == CUDA_SUCCESS ? bfc_reuse_free(driver, arena, pointer) : result;
}

/* Where no event can be had for the stream: by a fence over all that its context has under way. */
static CUresult free_after_context(const struct bfc_driver *driver, struct bfc_arena *arena,
                                   CUdeviceptr pointer, CUcontext context) {
    CUcontext contexts[FENCE_CONTEXTS];
    CUresult result = CUDA_SUCCESS;
    /* A stream of another context that may use the block is a peer's, from now on at the latest. */
    if (context != arena->context)
        result = bfc_peers_add(context, arena->context);
    if (result != CUDA_SUCCESS)
        return result;
    return free_fenced(driver, arena, pointer, contexts, contexts_of(arena, true, contexts));
}

CUresult bfc_reuse_free_async(const struct bfc_driver *driver, struct bfc_arena *arena,
                              CUdeviceptr pointer, CUstream stream, bool per_thread) {
    struct bfc_stream_calls calls = stream_calls(driver, per_thread);
    if (!calls.get_context || !calls.record || !driver->cuEventCreate || !driver->cuEventQuery)
        return free_after_stream(driver, arena, pointer, &calls, stream);
    CUcontext context = NULL;
    CUresult result = calls.get_context(stream, &context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!is_live(arena, pointer))
        return CUDA_ERROR_INVALID_VALUE;
    __atomic_store_n(&arena->frees_in_streams, true, __ATOMIC_RELAXED);
    context = bfc_green_owner(driver, context);
    result = bfc_stream_frees_free(driver, arena, pointer, &calls, stream, context);
    if (result == CUDA_SUCCESS)
        bfc_stream_frees_poll(driver, arena);
    else if (arena->fences &&
             (result == CUDA_ERROR_INVALID_HANDLE || result == CUDA_ERROR_OUT_OF_MEMORY))
        result = free_after_context(driver, arena, pointer, context);
    return context == arena->context ? latch(arena, result) : result;
}

/* ---- what was handed out ---- */

CUresult bfc_reuse_wait_for_handed_out(const struct bfc_driver *driver, struct bfc_arena *arena) {
    CUresult result = CUDA_SUCCESS;
    bfc_fence announced = arena->fences ? bfc_fences_announced(arena->fences) : BFC_NO_FENCE;
    if (announced != BFC_NO_FENCE)
        bfc_fences_wait(arena->fences, driver, announced, UINT64_MAX, &result);
    return latch(arena, result);
}

static void log_several(void) {
    static unsigned seen;
    const struct bfc_process *process = bfc_process_if_made();
    if (process && process->serves && process->options.free_mode == BFC_FREE_ORDERED &&
        bfc_contexts_are_several())
        bfc_log_repeated(BFC_LOG_INFO, &seen,
                         "another context began: while there are several BFC_FREE=ordered acts as "
                         "lazy");
}

/* It is entered first, and waited for before it can touch anything. */
void bfc_reuse_context_found(const struct bfc_driver *driver, CUcontext context) {
    struct bfc_arena *arena = NULL;
    bfc_contexts_add(context);
    while (bfc_process_if_made() && (arena = bfc_arena_next(arena)))
        if (arena->context != context)
            bfc_reuse_wait_for_handed_out(driver, arena);
    bfc_contexts_settle(context);
    log_several();
}
