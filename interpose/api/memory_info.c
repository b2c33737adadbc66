/*
 * Answers cuMemGetInfo. As natively, the free bytes are what the program could still allocate in
 * one call: what the driver has left, and all that the pools on the device could give back after a
 * wait for work under way, as a native free waits. BFC_LIMIT and BFC_RESERVE lower that sum. If the
 * largest free block of the pool is larger, its size is the answer; smaller free blocks do not
 * count.
 */
#include "base/numbers.h"
#include "interpose/api/memory.h"
#include "interpose/api/open_arena.h"
#include "interpose/context/contexts.h"
#include "interpose/reuse/free_fence.h"
#include "interpose/reuse/settle_arena.h"

/* The size of the driver's own pages, of which it makes large allocations. */
#define PAGE ((uint64_t)2 << 20)

/* Sums up the room in all pools on the arena's device; only `largest` is of the arena's own pool.
 * Adds to `asleep` how many bytes sleeping pools (BFC_SLEEP_IDLE) will take back from the
 * device. */
static struct bfc_pool_room read_room(const struct bfc_arena *arena, uint64_t *asleep) {
    struct bfc_pool_room all = {0}, room;
    struct bfc_arena *one = NULL;
    while ((one = bfc_arena_next_on(arena->device, one))) {
        bfc_reuse_settle(one);
        bfc_pool_read_room(one->pool, &room);
        all.reserved += room.reserved;
        all.on_device += room.on_device;
        all.largest = one == arena ? room.largest : all.largest;
        *asleep += bfc_load_relaxed(&one->stats.section->pages.asleep);
    }
    return all;
}

static uint64_t whole_pages(uint64_t bytes) {
    return bytes / PAGE * PAGE;
}

/* Rounds `bytes` down to a request without padding: to a multiple of PAGE with pages, in policy
 * pytorch, or if the driver may serve it; otherwise of BFC_ALIGNMENT. */
static uint64_t whole_requests(const struct bfc_arena *arena, uint64_t bytes) {
    const struct bfc_process *process = bfc_process_if_made();
    bool by_pages = arena->has_pages || arena->bypass_above != UINT64_MAX ||
                    (process && process->options.policy == BFC_POLICY_PYTORCH);
    return by_pages ? whole_pages(bytes) : bytes / BFC_ALIGNMENT * BFC_ALIGNMENT;
}

/* Returns what BFC_LIMIT leaves to the program once the pools have given back `goes` bytes. The
 * `asleep` bytes count as reserved, since sleeping pools will take them again. */
static uint64_t room_below_limit(const struct bfc_arena *arena, uint64_t asleep, uint64_t goes) {
    if (arena->limit == UINT64_MAX)
        return UINT64_MAX;
    uint64_t held = bfc_subtract_saturating(bfc_load_acquire(&arena->on->reserved) + asleep, goes);
    return whole_requests(arena, bfc_subtract_saturating(arena->limit, held));
}

/* Returns what BFC_RESERVE leaves to the program of the `bytes` that the device has. */
static uint64_t room_beside_reserve(const struct bfc_arena *arena, uint64_t bytes) {
    if (!arena->left_to_others)
        return bytes;
    return whole_requests(arena, bfc_subtract_saturating(bytes, arena->left_to_others));
}

static void correct_figures(const struct bfc_arena *arena, size_t *free_bytes,
                            size_t *total_bytes) {
    uint64_t asleep = 0, leaving = bfc_leaving_bytes(arena->on);
    struct bfc_pool_room room = read_room(arena, &asleep);
    uint64_t there = bfc_subtract_saturating(*free_bytes + room.on_device + leaving, asleep);
    uint64_t available = room_beside_reserve(arena, there);
    available = bfc_min(available, room_below_limit(arena, asleep, room.reserved + leaving));
    if (room.largest <= arena->bypass_above)
        available = bfc_max(available, whole_pages(room.largest));
    *total_bytes = bfc_min(*total_bytes, arena->limit);
    /* A region that another thread has reserved since the driver's answer counts twice, as free on
     * the device and in the pool, so the sum may exceed what the device has. */
    *free_bytes = bfc_min(available, *total_bytes);
}

enum { READINGS = 8 };

/* If another thread has reserved memory or given some back between the driver's answer and the
 * pools', the two do not fit together, and both are asked again, READINGS times at most. */
static CUresult read_memory_info(const struct bfc_driver *driver, const struct bfc_arena *arena,
                                 size_t *free_bytes, size_t *total_bytes) {
    CUresult result = CUDA_SUCCESS;
    bool moved = true;
    for (int i = 0; i < READINGS && moved && result == CUDA_SUCCESS; i++) {
        uint64_t reserved = bfc_load_acquire(&arena->on->reserved);
        result = driver->cuMemGetInfo_v2(free_bytes, total_bytes);
        if (result == CUDA_SUCCESS)
            correct_figures(arena, free_bytes, total_bytes);
        moved = bfc_load_acquire(&arena->on->reserved) != reserved;
    }
    return result;
}

/* Whether cuMemGetInfo must be answered from an arena's figures. Before the first allocation the
 * driver's figures are right, unless BFC_LIMIT or BFC_RESERVE leaves the program less. */
static bool needs_arena(const struct bfc_process *process) {
    const struct bfc_options *options = &process->options;
    bool unbounded = options->limit.bytes == UINT64_MAX && !(options->limit.fraction > 0);
    bool reserves = options->reserve.bytes || options->reserve.fraction > 0;
    struct bfc_arena *first = bfc_arena_next(NULL);
    bfc_arena_drop(first);
    return first || !unbounded || reserves;
}

static struct bfc_arena *arena_asked(const struct bfc_driver *driver) {
    enum bfc_forward_reason reason;
    const struct bfc_process *process = driver->can_pool ? bfc_process() : NULL;
    return process && process->active && needs_arena(process) ? bfc_current_arena(driver, &reason)
                                                              : NULL;
}

CUresult bfc_memory_info(const struct bfc_driver *driver, size_t *free_bytes, size_t *total_bytes) {
    size_t device_free = 0, device_total = 0;
    if (bfc_process_if_made())
        bfc_contexts_review(driver);
    struct bfc_arena *arena = arena_asked(driver);
    if (!arena || read_memory_info(driver, arena, &device_free, &device_total) != CUDA_SUCCESS) {
        CUresult result = driver->cuMemGetInfo_v2(free_bytes, total_bytes);
        bfc_reuse_note_failure(result);
        return result;
    }
    if (free_bytes)
        *free_bytes = device_free;
    if (total_bytes)
        *total_bytes = device_total;
    return CUDA_SUCCESS;
}
