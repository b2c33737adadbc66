/* Host memory in place of device memory. */
#include "interpose/reuse/spill.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "interpose/arena/host_memory.h"
#include "interpose/arena/upstream.h"
#include "interpose/config/process.h"
#include "interpose/context/capture.h"
#include "interpose/reuse/settle.h"

/* ---- allocating ---- */

static void log_impossible(const struct bfc_arena *home) {
    static bool logged;
    if (!bfc_exchange_relaxed(&logged, true))
        bfc_log(BFC_LOG_INFO, "device %d: it cannot map host memory, so BFC_SPILL has no effect",
                (int)home->device);
}

static struct bfc_arena *make_arena(const struct bfc_driver *driver, struct bfc_arena *home) {
    if (!bfc_host_memory_can_be_had(driver, home->device)) {
        log_impossible(home);
        return NULL;
    }
    struct bfc_arena *arena = home->make_host(driver, home);
    return arena ? bfc_arena_publish(arena, home->id) : NULL;
}

static struct bfc_arena *find_or_make(const struct bfc_driver *driver, struct bfc_arena *home) {
    struct bfc_arena *arena = bfc_arena_host_of_context(home->context, home->id);
    if (!arena)
        arena = make_arena(driver, home);
    return arena ? bfc_arena_set_last(arena) : NULL;
}

bool bfc_spill_may_serve(size_t bytes) {
    const struct bfc_process *process = bfc_process_if_made();
    return process && bytes <= process->options.spill;
}

struct bfc_arena *bfc_spill_allocate(const struct bfc_driver *driver, struct bfc_arena *home,
                                     size_t bytes, enum bfc_reuse_how how, CUdeviceptr *pointer) {
    enum bfc_status status;
    struct bfc_arena *arena = bfc_spill_may_serve(bytes) ? find_or_make(driver, home) : NULL;
    CUresult result = arena ? bfc_reuse_allocate(driver, arena, bytes, how, pointer, &status)
                            : CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS) {
        bfc_upstream_note_fatal(result);
        return NULL;
    }
    bfc_upstream_take_error(); /* of the device, which refused before */
    return arena;
}

/* ---- giving back ---- */

/* A wholly free region is one free block. */
static void add_idle(void *context, const struct bfc_block_info *block) {
    bool *found = context;
    *found |= !block->live && block->size == block->region_size;
}

/* Ready bytes beside live ones cannot go back. */
static bool has_free(const struct bfc_arena *arena) {
    struct bfc_pool_stats stats;
    bfc_pool_read_stats(arena->pool, &stats);
    bool found = stats.pending || stats.deferred;
    if (!found && stats.ready)
        bfc_pool_visit(arena->pool, add_idle, &found);
    return found;
}

static void give_back_ready(struct bfc_arena *arena) {
    if (bfc_captures_exist())
        return;
    bfc_reuse_settle(arena);
    bfc_pool_trim(arena->pool, UINT64_MAX);
}

/* By a request for nothing: so a helper that is about to sleep does not. */
static void wake_helper(const struct bfc_arena *arena) {
    struct bfc_segment_header *segment = arena->stats.segment;
    int before = errno;
    if (!segment)
        return;
    bfc_fetch_add_release(&segment->request, 1);
    syscall(SYS_futex, &segment->request, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    errno = before;
}

void bfc_spill_freed(struct bfc_arena *arena) {
    give_back_ready(arena);
    if (has_free(arena))
        wake_helper(arena);
}

bool bfc_spill_is_free(void) {
    struct bfc_arena *arena = NULL;
    bool found = false;
    while (!found && (arena = bfc_arena_next_host(arena)))
        found = has_free(arena);
    bfc_arena_drop(arena);
    return found;
}

void bfc_spill_give_back(void) {
    struct bfc_arena *arena = NULL;
    while ((arena = bfc_arena_next_host(arena)))
        give_back_ready(arena);
}
