/* Gives cached device memory back to the driver. Host memory is left to the feature `spill`. */
#include "interpose/reuse/give_back.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "interpose/arena/arena.h"
#include "interpose/arena/stream_frees.h"
#include "interpose/arena/upstream.h"
#include "interpose/config/log.h"
#include "interpose/config/process.h"
#include "interpose/context/capture.h"
#include "interpose/driver/current.h"
#include "interpose/fences/fences.h"
#include "interpose/reuse/free_fence.h"
#include "interpose/reuse/free_while_capturing.h"
#include "interpose/reuse/settle_arena.h"

static uint64_t trim_ready(const struct bfc_driver *driver, struct bfc_arena *arena,
                           uint64_t bytes) {
    uint64_t freed = bfc_upstream_free_spare_page(driver, arena);
    bfc_reuse_settle(arena);
    return freed + bfc_pool_trim(arena->pool, bytes);
}

/* Gives back memory while something captures. The driver's free of a region waits for work, but no
 * documentation promises that unmapping a page waits. So if there are pages, this thread waits. */
static uint64_t trim_captured(const struct bfc_driver *driver, struct bfc_arena *arena,
                              uint64_t bytes) {
    if (!arena->has_pages)
        return bfc_pool_trim_used(arena->pool, bytes);
    if (!bfc_arena_enter(arena))
        return 0;
    bfc_reuse_make_all_ready(driver, arena);
    bfc_arena_leave(arena);
    return trim_ready(driver, arena, bytes);
}

/* Waits for the regions that other threads are giving back. Without this library their memory would
 * be free already, so a program may count on it. */
static uint64_t await_others(const struct bfc_driver *driver, struct bfc_arena *arena,
                             uint64_t bytes) {
    (void)driver;
    (void)bytes;
    return bfc_pool_await_releases(arena->pool);
}

/* Waits for the fences of pending blocks, then gives back what has become ready. A wait for all
 * work of the context might never end, since that work may depend on what this thread does next.
 * While something captures, no fence can be waited for, so trim_captured waits in another way. */
static uint64_t trim_fenced(const struct bfc_driver *driver, struct bfc_arena *arena,
                            uint64_t bytes) {
    if (bfc_captures_exist())
        return trim_captured(driver, arena, bytes);
    if (!arena->fences || !bfc_arena_enter(arena))
        return 0;
    bfc_fences_wait(arena->fences, driver, bfc_pool_last_pending(arena->pool), UINT64_MAX, NULL);
    bfc_arena_leave(arena);
    return trim_ready(driver, arena, bytes);
}

/* Waits for the events of blocks freed in stream order, then gives back what has become ready. The
 * length and the number of waits are bounded: a stream's work may depend on what this thread does
 * next, and other threads may free in stream order without end. */
static uint64_t trim_awaited(const struct bfc_driver *driver, struct bfc_arena *arena,
                             uint64_t bytes) {
    enum { WAITS_MOST = 64 };
    uint64_t released = 0, until = bfc_now_ns() + BFC_NS_PER_SECOND;
    bool some = true;
    for (int waits = 0; !released && some && (waits < WAITS_MOST || bfc_now_ns() < until) &&
                        bfc_arena_enter(arena);
         waits++) {
        some = bfc_stream_frees_wait(driver, arena, BFC_NS_PER_SECOND);
        bfc_arena_leave(arena);
        released = trim_ready(driver, arena, bytes);
    }
    return released;
}

/* Ways to get memory back from one arena, the cheapest first: without a wait, then after waits for
 * other threads that give memory back, for the fences of frees, and for the events of frees in
 * stream order. Each tries to give at least `bytes` back, and returns how many bytes it gave
 * back. */
static uint64_t (*const efforts[])(const struct bfc_driver *driver, struct bfc_arena *arena,
                                   uint64_t bytes) = {
    trim_ready,
    await_others,
    trim_fenced,
    trim_awaited,
};
enum { EFFORTS = sizeof efforts / sizeof efforts[0], EFFORTS_OF_FREE = 3 };

static void log_given_back(uint64_t bytes, const char *what) {
    static unsigned seen;
    if (bytes)
        bfc_log_repeated(BFC_LOG_INFO, &seen, "%s %s", what, BFC_BYTES(bytes));
}

/* Whether another thread has given a region or page back since this thread last called this
 * function. If so, the driver's refusal may be out of date, and asking again is worth it. */
static bool others_gave_back(void) {
    static __thread uint64_t seen INITIAL_EXEC;
    uint64_t before = seen;
    seen = bfc_upstream_releases_of_others();
    return seen != before;
}

enum { ANY_DEVICE = -1 };

/* Has all arenas of the device except `but` give back at least `bytes`. Tries the first `count`
 * ways of `efforts`, and stops once `enough` bytes have come. Returns how many bytes have come. */
static uint64_t make_efforts(CUdevice device, const struct bfc_arena *but, unsigned count,
                             uint64_t bytes, uint64_t enough) {
    uint64_t came = 0;
    for (unsigned effort = 0; effort < count && came < enough; effort++) {
        struct bfc_arena *arena = NULL;
        while (came < bytes && (arena = bfc_arena_next(arena)))
            if (!bfc_arena_is_host(arena) && arena != but &&
                (device == ANY_DEVICE || arena->device == device))
                came += efforts[effort](bfc_driver(), arena, bytes - came);
        bfc_arena_drop(arena);
    }
    return came;
}

/* Without this library a free waits for work, and then all contexts can have the memory. So this
 * function tries all of `efforts`, including those that wait. */
uint64_t bfc_give_back_for_sibling(struct bfc_arena *arena, uint64_t bytes) {
    uint64_t came = make_efforts(arena->device, arena, EFFORTS, bytes, bytes);
    log_given_back(came, "the device's other pools gave back");
    return others_gave_back() && !came ? 1 : came;
}

uint64_t bfc_give_back_as_free(CUdevice device, uint64_t bytes) {
    uint64_t came = make_efforts(device, NULL, EFFORTS_OF_FREE, bytes, bytes);
    log_given_back(came, "what was freed was handed over to another job that waits:");
    return came;
}

struct awaited_fence {
    struct bfc_arena *arena;
    bfc_fence fence;
};

static bool is_complete(void *argument) {
    const struct awaited_fence *awaited = argument;
    if (!bfc_arena_enter(awaited->arena))
        return false;
    bfc_fence complete = bfc_fences_poll(awaited->arena->fences, bfc_driver());
    bfc_arena_leave(awaited->arena);
    return complete >= awaited->fence;
}

static bool record_now(const struct bfc_driver *driver, struct bfc_arena *arena, bfc_fence *fence) {
    if (!bfc_arena_enter(arena))
        return false;
    CUresult result = bfc_reuse_record(driver, arena, &arena->context, 1, false, fence);
    bfc_arena_leave(arena);
    return result == CUDA_SUCCESS;
}

/* Makes an arena's free blocks ready, if its context completes its present work within `limit_ns`.
 * False: it does not, no fence can be recorded, or the memory is host memory. Then nothing should
 * be given back: the driver's free of a region would wait for that work, and no thread could use
 * the region meanwhile, although the work may depend on what the program does next. */
static bool comes_to_rest(const struct bfc_driver *driver, struct bfc_arena *arena,
                          uint64_t limit_ns) {
    struct awaited_fence awaited = {.arena = arena};
    if (bfc_arena_is_host(arena))
        return false;
    if (arena->fences &&
        (!record_now(driver, arena, &awaited.fence) || !bfc_await(is_complete, &awaited, limit_ns)))
        return false;
    bfc_reuse_settle(arena);
    return true;
}

uint64_t bfc_give_back_bytes(uint64_t bytes) {
    const struct bfc_driver *driver = bfc_driver();
    uint64_t released = 0;
    struct bfc_arena *arena = NULL;
    while (released < bytes && (arena = bfc_arena_next(arena)))
        if (comes_to_rest(driver, arena, BFC_NS_PER_SECOND))
            released += bfc_pool_trim(arena->pool, bytes - released);
    bfc_arena_drop(arena);
    log_given_back(released, "a request to trim was answered:");
    return released;
}

uint64_t bfc_give_back_idle(uint64_t idle_ns, uint64_t limit_ns) {
    const struct bfc_driver *driver = bfc_driver();
    uint64_t released = 0;
    struct bfc_arena *arena = NULL;
    while ((arena = bfc_arena_next(arena)))
        if (comes_to_rest(driver, arena, limit_ns))
            released += bfc_pool_trim_idle(arena->pool, idle_ns);
    log_given_back(released, "idle regions went back (BFC_TRIM_IDLE):");
    return released;
}

struct bfc_place bfc_place_of(const CUmemLocation *location) {
    return location && location->type == CU_MEM_LOCATION_TYPE_DEVICE ? BFC_ON(location->id)
                                                                     : BFC_HERE;
}

/* Whether the stream of the call is capturing; this query does a capture no harm. If the driver
 * fails, a capture is assumed. */
static bool place_captures(const struct bfc_driver *driver, const struct bfc_place *place) {
    CUstreamCaptureStatus status;
    CUresult (*ask)(CUstream, CUstreamCaptureStatus *) =
        place->per_thread ? driver->cuStreamIsCapturing_ptsz : driver->cuStreamIsCapturing;
    return place->kind == BFC_PLACE_STREAM && ask &&
           (ask(place->stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE);
}

/* Returns the context of the call's stream. That of a default stream is the current one. */
static CUcontext context_of_place(const struct bfc_driver *driver, const struct bfc_place *place) {
    CUcontext context = NULL;
    bool is_default = !place->stream || place->stream == CU_STREAM_LEGACY ||
                      place->stream == CU_STREAM_PER_THREAD;
    if (place->kind != BFC_PLACE_STREAM || is_default || !driver->cuStreamGetCtx ||
        driver->cuStreamGetCtx(place->stream, &context) != CUDA_SUCCESS)
        driver->cuCtxGetCurrent(&context);
    return context;
}

static CUdevice device_of_place(const struct bfc_driver *driver, const struct bfc_place *place) {
    CUdevice device = ANY_DEVICE;
    bool pushed;
    if (place->kind == BFC_PLACE_DEVICE || place->kind == BFC_PLACE_ANY)
        return place->kind == BFC_PLACE_DEVICE ? place->device : ANY_DEVICE;
    CUcontext context = context_of_place(driver, place);
    if (!context || bfc_current_enter(driver, context, &pushed) != CUDA_SUCCESS)
        return ANY_DEVICE;
    if (driver->cuCtxGetDevice(&device) != CUDA_SUCCESS)
        device = ANY_DEVICE;
    bfc_current_leave(driver, pushed);
    return device;
}

/* Whether this thread may free. While something captures, it may if the driver can put it into
 * relaxed mode, in which frees are allowed and do a capture no harm. */
static bool may_relax(const struct bfc_driver *driver) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (!bfc_captures_exist())
        return true;
    if (!driver->cuThreadExchangeStreamCaptureMode ||
        driver->cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS)
        return false;
    bfc_capture_restore(driver, mode);
    return true;
}

bool bfc_give_back_for_call(const struct bfc_driver *driver, struct bfc_place place) {
    if (!bfc_process_if_made() || !may_relax(driver) || place_captures(driver, &place))
        return false;
    CUdevice device = device_of_place(driver, &place);
    uint64_t released = make_efforts(device, NULL, EFFORTS, UINT64_MAX, 1);
    log_given_back(released, "a call past the pool lacked memory, the pools gave back");
    return others_gave_back() || released > 0;
}
