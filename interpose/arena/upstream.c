/*
 * Takes regions of device memory or host memory (spill.h) from the driver, and gives them back.
 *
 * A pool calls the functions here without holding its lock. A region enters the region map before
 * the pool hands out blocks of it, and leaves the map before the driver gets the region back.
 */
#include "interpose/arena/upstream.h"

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/numbers.h"
#include "interpose/arena/arena.h"
#include "interpose/arena/device.h"
#include "interpose/arena/region_map.h"
#include "interpose/config/log.h"
#include "interpose/config/process.h"
#include "interpose/context/capture.h"
#include "interpose/driver/current.h"
#include "interpose/host/background.h"
#include "interpose/stats/events.h"
#include "segment/queue.h"

/* Whether BFC_RESERVE bytes of the device would stay free if `bytes` were taken. */
static bool leaves_enough(const struct bfc_driver *driver, const struct bfc_arena *arena,
                          uint64_t bytes) {
    size_t free_bytes, total;
    if (!arena->left_to_others || !driver->cuMemGetInfo_v2 ||
        driver->cuMemGetInfo_v2(&free_bytes, &total) != CUDA_SUCCESS)
        return true;
    return free_bytes >= arena->left_to_others && bytes <= free_bytes - arena->left_to_others;
}

/* Whether memory must be left to another job that has been waiting for memory (BFC_WAIT) for longer
 * than this one: the device has too little for both. Jobs are served in the order in which they
 * began to wait. */
static bool is_due_to_others(const struct bfc_driver *driver, const struct bfc_arena *arena,
                             uint64_t bytes) {
    const struct bfc_process *process = bfc_process_if_made();
    size_t free_bytes, total;
    if (!arena->stats.segment || !process || process->options.wait <= 0)
        return false;
    uint64_t wanted = bfc_waiters_want(arena->stats.section).bytes;
    return wanted && driver->cuMemGetInfo_v2 &&
           driver->cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS &&
           free_bytes < bfc_add_saturating(bytes, wanted);
}

/* Whether the driver may be asked for `bytes`. False: `why` is set to the rule that forbids it. */
static bool may_take(const struct bfc_driver *driver, const struct bfc_arena *arena, uint64_t bytes,
                     bool is_first, const char **why) {
    *why = "less than BFC_RESERVE would be left to others";
    if (!leaves_enough(driver, arena, bytes))
        return false;
    *why = "another job waits for memory";
    return is_first || !is_due_to_others(driver, arena, bytes);
}

/* Publishes in the shared-memory segment how much memory the device has left. The arena's context
 * must be current. */
void bfc_upstream_note_device_free(const struct bfc_driver *driver, struct bfc_arena *arena) {
    size_t free_bytes, total_bytes;
    if (bfc_arena_is_host(arena) || !driver->cuMemGetInfo_v2 ||
        driver->cuMemGetInfo_v2(&free_bytes, &total_bytes) != CUDA_SUCCESS)
        return;
    bfc_store_relaxed(&arena->stats.section->device_free, free_bytes);
    bfc_store_relaxed(&arena->stats.section->device_free_ns, bfc_wall_clock_ns());
}

static CUresult take_from_device(const struct bfc_driver *driver, const struct bfc_arena *arena,
                                 uint64_t bytes, bool is_first, CUdeviceptr *pointer,
                                 const char **why) {
    if (!may_take(driver, arena, bytes, is_first, why))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *why = "the driver refused it";
    return driver->cuMemAlloc_v2(pointer, bytes);
}

static CUresult give_to_device(const struct bfc_driver *driver, CUdeviceptr start) {
    return driver->cuMemFree_v2(start);
}

const struct bfc_memory_source bfc_device_memory = {
    .over_limit = "BFC_LIMIT would be exceeded",
    .take = take_from_device,
    .give = give_to_device,
};

static CUresult reserve_charged(struct bfc_arena *arena, uint64_t bytes, bool is_first,
                                CUdeviceptr *pointer, const char **why) {
    const struct bfc_driver *driver = bfc_driver();
    bool pushed;
    *why = "its context cannot be entered";
    CUresult result = bfc_arena_make_current(driver, arena, &pushed);
    if (result != CUDA_SUCCESS)
        return result;
    result = arena->source->take(driver, arena, bytes, is_first, pointer, why);
    if (result == CUDA_SUCCESS)
        bfc_arena_given_out(*pointer, bytes);
    if (result == CUDA_SUCCESS && !bfc_region_add(*pointer, bytes, arena)) {
        arena->source->give(driver, *pointer);
        *why = "the host has no memory for its record";
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    bfc_upstream_note_device_free(driver, arena);
    bfc_current_leave(driver, pushed);
    return result;
}

CUresult bfc_upstream_charge(struct bfc_arena *arena, uint64_t bytes, bool is_first,
                             const char **why) {
    *why = "BFC_LIMIT would be exceeded";
    if (!bfc_device_charge(arena, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (may_take(bfc_driver(), arena, bytes, is_first, why))
        return CUDA_SUCCESS;
    bfc_device_refund(arena, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Counts a region against the limit and allocates it. On an error `why` is set to the reason. */
static CUresult reserve_region(struct bfc_arena *arena, uint64_t bytes, bool is_first,
                               CUdeviceptr *pointer, const char **why) {
    *why = arena->source->over_limit;
    if (!bfc_device_charge(arena, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = reserve_charged(arena, bytes, is_first, pointer, why);
    if (result != CUDA_SUCCESS)
        bfc_device_refund(arena, bytes);
    return result;
}

static void log_refused(const struct bfc_arena *arena, uint64_t bytes, const char *why,
                        CUresult result) {
    /* counts each message for bfc_log_repeated: [0] for device memory, [1] for host memory */
    static unsigned seen[2];
    bool host = bfc_arena_is_host(arena);
    bfc_log_repeated(BFC_LOG_INFO, &seen[host],
                     host ? "device %d: %s were not spilled to host memory: %s (CUresult %d)"
                          : "device %d: the pool did not grow by %s: %s (CUresult %d)",
                     (int)arena->device, BFC_BYTES(bytes), why, (int)result);
}

static void log_region(const struct bfc_arena *arena, bfc_addr start, uint64_t bytes,
                       const char *what) {
    bfc_log(BFC_LOG_DEBUG, "device %d, context %llu: region 0x%llx of %s %s", (int)arena->device,
            arena->id, (unsigned long long)start, BFC_BYTES(bytes), what);
}

enum bfc_reserve_result bfc_upstream_note_refused(struct bfc_arena *arena, uint64_t bytes,
                                                  const char *why, CUresult result,
                                                  struct bfc_ask *ask) {
    ask->error = (int)result;
    log_refused(arena, bytes, why, result);
    bfc_events_add_landmark(&arena->stats, BFC_EVENT_REFUSED, 0, bytes);
    return result == CUDA_ERROR_OUT_OF_MEMORY ? BFC_REFUSED : BFC_FAILED;
}

enum bfc_reserve_result bfc_upstream_reserve(void *context, uint64_t bytes, bfc_addr *start,
                                             struct bfc_ask *ask) {
    struct bfc_arena *arena = context;
    CUdeviceptr pointer = 0;
    const char *why;
    CUresult result = reserve_region(arena, bytes, ask->is_first, &pointer, &why);
    if (result != CUDA_SUCCESS)
        return bfc_upstream_note_refused(arena, bytes, why, result, ask);
    *start = pointer;
    bfc_events_add_landmark(&arena->stats, BFC_EVENT_GROW, pointer, bytes);
    log_region(arena, pointer, bytes, "was reserved");
    return BFC_RESERVED;
}

/* Whether the region is still allocated after a free with this result. A fatal error comes from
 * earlier work, for which the free has waited. The pool of a context with such an error hands out
 * nothing any more, so its region counts as freed. */
static bool is_kept(CUresult result) {
    return result != CUDA_SUCCESS && result != CUDA_ERROR_CONTEXT_IS_DESTROYED &&
           !bfc_driver_is_fatal(result);
}

/* Frees a region with the thread's capture mode set to relaxed, even if nothing captures yet: a
 * capture may begin while the free waits for the device. In another mode the capture would forbid
 * the free, and become invalid itself. */
static CUresult free_region(const struct bfc_driver *driver, struct bfc_arena *arena,
                            const struct bfc_leaving *region) {
    bool pushed;
    CUresult result = bfc_arena_make_current(driver, arena, &pushed);
    if (result != CUDA_SUCCESS) {
        bfc_leaving_end(region);
        return result;
    }
    CUstreamCaptureMode mode = bfc_capture_relax_now(driver);
    result = arena->source->give(driver, region->start);
    bfc_leaving_end(region);
    bfc_upstream_note_device_free(driver, arena);
    bfc_capture_restore(driver, mode);
    bfc_current_leave(driver, pushed);
    return result;
}

/* Puts a region that the driver has refused to free back into the map. Its blocks may become
 * deferred, so has_deferred is set, which makes a later poll give them a fence. */
static bool keep_region(struct bfc_arena *arena, CUdeviceptr start, uint64_t bytes) {
    bfc_store_seq_cst(&arena->has_deferred, true);
    return bfc_region_add(start, bytes, arena);
}

static uint64_t releases; /* of all threads together */
static __thread uint64_t own_releases INITIAL_EXEC;

uint64_t bfc_upstream_releases_of_others(void) {
    return bfc_load_acquire(&releases) - own_releases;
}

void bfc_upstream_note_release(void) {
    own_releases++;
    bfc_fetch_add_acq_rel(&releases, 1);
}

/* Frees a region. The arena's context is made current for that, since the caller may be the helper
 * thread or have another context current. Nothing is freed if the context has ended, since its
 * memory has gone with it, nor while the process exits. Host memory is freed only by the library's
 * own threads: that may wait for all work of the context, and a call of the program must not. */
bool bfc_upstream_release(void *context, bfc_addr start, uint64_t bytes, int *error) {
    struct bfc_arena *arena = context;
    bool refused = false, kept = false;
    *error = CUDA_ERROR_OUT_OF_MEMORY;
    if (arena->source->gives_in_background && !bfc_background_is_current()) {
        bfc_store_seq_cst(&arena->has_deferred, true);
        return false;
    }
    struct bfc_leaving region = {
        .start = start, .bytes = bytes, .device = arena->on, .ended = &arena->ended};
    bfc_leaving_begin(&region);
    bfc_region_remove(start, arena);
    bool back = !bfc_background_is_stopped() && bfc_arena_await(arena);
    if (back) {
        CUresult result = free_region(bfc_driver(), arena, &region);
        *error = (int)result;
        refused = is_kept(result);
        kept = refused && keep_region(arena, start, bytes);
        bfc_arena_leave(arena);
    } else {
        bfc_leaving_end(&region);
    }
    if (kept)
        return false;
    if (refused) { /* the driver has it, so that it counts as reserved until the context ends */
        log_region(arena, start, bytes, "is lost: the host has no memory for its record");
        return true;
    }
    bfc_upstream_note_release();
    bfc_events_add_landmark(&arena->stats, BFC_EVENT_RELEASE, start, bytes);
    log_region(arena, start, bytes, back ? "was given back" : "has gone with its context");
    bfc_device_refund(arena, bytes);
    return true;
}

/* Size of an allocation that is made only because freeing it waits for the context's work. The
 * driver may serve less from memory that it caches, and then the free does not wait. */
enum { WAIT_BYTES = 2 << 20 };

/* Frees an allocation that was made only because its free waits. If the driver refuses, the arena
 * keeps the allocation for the next such wait; if it keeps one already, the new one is never
 * freed. */
static CUresult free_page(const struct bfc_driver *driver, struct bfc_arena *arena,
                          CUdeviceptr page) {
    CUdeviceptr none = 0;
    CUresult result = driver->cuMemFree_v2(page);
    if (is_kept(result))
        bfc_compare_exchange_acq_rel(&arena->spare_page, &none, page);
    return result;
}

static CUresult allocate_and_free(const struct bfc_driver *driver, struct bfc_arena *arena) {
    CUdeviceptr page = bfc_exchange_acq_rel(&arena->spare_page, 0);
    CUresult result = page ? CUDA_SUCCESS : driver->cuMemAlloc_v2(&page, WAIT_BYTES);
    return result == CUDA_SUCCESS ? free_page(driver, arena, page) : result;
}

/* Waits by allocating and freeing pinned host memory. The free was seen to wait for the context's
 * work, but no documentation promises that. */
static CUresult pin_and_free(const struct bfc_driver *driver, struct bfc_arena *arena) {
    void *memory;
    (void)arena;
    if (!driver->cuMemHostAlloc || !driver->cuMemFreeHost)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = driver->cuMemHostAlloc(&memory, 1, 0);
    return result == CUDA_SUCCESS ? driver->cuMemFreeHost(memory) : result;
}

static CUresult relaxed_in_context(const struct bfc_driver *driver, struct bfc_arena *arena,
                                   CUresult (*wait)(const struct bfc_driver *driver,
                                                    struct bfc_arena *arena)) {
    bool pushed;
    CUresult result = bfc_arena_make_current(driver, arena, &pushed);
    if (result != CUDA_SUCCESS)
        return result;
    CUstreamCaptureMode mode = bfc_capture_relax_now(driver);
    result = wait(driver, arena);
    bfc_capture_restore(driver, mode);
    bfc_current_leave(driver, pushed);
    return result;
}

/* Waits for the context's work by freeing one of the pool's own regions. Returns the error of that
 * free. A pool with pages has no regions to free; it gives back pages instead, so that WAIT_BYTES
 * can be allocated and freed. */
static CUresult free_own_region(const struct bfc_driver *driver, struct bfc_arena *arena) {
    if (arena->has_pages)
        return bfc_pool_trim(arena->pool, WAIT_BYTES)
                   ? relaxed_in_context(driver, arena, allocate_and_free)
                   : CUDA_ERROR_OUT_OF_MEMORY;
    int error = CUDA_ERROR_OUT_OF_MEMORY;
    bfc_pool_release_one(arena->pool, &error);
    return (CUresult)error;
}

CUresult bfc_upstream_wait_as_free(const struct bfc_driver *driver, struct bfc_arena *arena) {
    arena = bfc_arena_is_host(arena) ? arena->home : arena;
    CUresult result = relaxed_in_context(driver, arena, allocate_and_free);
    /* The device is full: a free of one of the pool's own regions makes the driver wait as well. */
    return result == CUDA_ERROR_OUT_OF_MEMORY ? free_own_region(driver, arena) : result;
}

CUresult bfc_upstream_wait_weakly(const struct bfc_driver *driver, struct bfc_arena *arena) {
    return relaxed_in_context(driver, arena, pin_and_free);
}

uint64_t bfc_upstream_free_spare_page(const struct bfc_driver *driver, struct bfc_arena *arena) {
    uint64_t freed = 0;
    if (bfc_load_relaxed(&arena->spare_page) && bfc_arena_enter(arena)) {
        CUresult result = relaxed_in_context(driver, arena, allocate_and_free);
        freed = result == CUDA_SUCCESS ? WAIT_BYTES : 0;
        bfc_arena_leave(arena);
    }
    return freed;
}
