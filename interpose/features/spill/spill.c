/* Serves allocations from host memory in place of device memory. */
#include "interpose/features/spill/spill.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "interpose/api/make_arena.h"
#include "interpose/arena/arena.h"
#include "interpose/arena/device.h"
#include "interpose/arena/upstream.h"
#include "interpose/config/log.h"
#include "interpose/config/process.h"
#include "interpose/context/capture.h"
#include "interpose/driver/current.h"
#include "interpose/features/spill/host_memory.h"
#include "interpose/host/background.h"
#include "interpose/reuse/settle_arena.h"

static void add_idle(void *context, const struct bfc_block_info *block) {
    bool *found = context;
    *found |= !block->live && block->size == block->region_size;
}

/* Whether some memory of the arena of host memory can go back to the host, now or once the work
 * that used it is complete. Only whole regions go back, so a ready block counts only if it is a
 * whole region. */
static bool has_free(const struct bfc_arena *arena) {
    struct bfc_pool_stats stats;
    bfc_pool_read_stats(arena->pool, &stats);
    bool found = stats.pending || stats.deferred;
    if (!found && stats.ready)
        bfc_pool_visit(arena->pool, add_idle, &found);
    return found;
}

static uint32_t freed; /* atomic: a futex, incremented when there may be memory to give back */
static bool is_giving; /* atomic: whether the thread that gives host memory back may be doing so
                          now */

static void wake_giver(void) {
    int before = errno;
    bfc_fetch_add_release(&freed, 1);
    syscall(SYS_futex, &freed, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    errno = before;
}

void bfc_spill_freed(struct bfc_arena *arena, CUdeviceptr pointer, CUresult result, bool may_wait) {
    (void)pointer, (void)may_wait;
    if (arena && result == CUDA_SUCCESS && bfc_arena_is_host(arena) && has_free(arena))
        wake_giver();
}

/* Whether host memory of any context can go back to the host, now or later. */
static bool is_free(void) {
    struct bfc_arena *arena = NULL;
    bool found = false;
    while (!found && (arena = bfc_arena_next_host(arena)))
        found = bfc_host_left_is_there() || has_free(arena);
    bfc_arena_drop(arena);
    return found;
}

/* Frees host memory that contexts have left at their end. That is done in another context, which
 * has not ended, since the driver may not answer without one. */
static void collect_left(const struct bfc_driver *driver, struct bfc_arena *arena) {
    bool pushed;
    if (!bfc_host_left_is_there() || !bfc_arena_enter(arena))
        return;
    if (bfc_arena_make_current(driver, arena, &pushed) == CUDA_SUCCESS) {
        bfc_host_left_collect(driver);
        bfc_current_leave(driver, pushed);
    }
    bfc_arena_leave(arena);
}

static void give_back(void) {
    struct bfc_arena *arena = NULL;
    while (!bfc_captures_exist() && (arena = bfc_arena_next_host(arena))) {
        collect_left(bfc_driver(), arena);
        bfc_reuse_settle(arena);
        bfc_pool_trim(arena->pool, UINT64_MAX);
    }
    bfc_arena_drop(arena);
}

static void look_at_memory(void) {
    if (!bfc_background_begin())
        return;
    bfc_store_seq_cst(&is_giving, true);
    give_back();
    bfc_store_seq_cst(&is_giving, false);
    bfc_background_end();
}

/* How often the thread that gives host memory back checks whether the work that used freed blocks
 * has become complete. */
#define NS_A_LOOK ((uint64_t)20 * 1000 * 1000)

static void *run_giver(void *unused) {
    const struct timespec soon = bfc_timespec(NS_A_LOOK);
    bfc_background_enter();
    for (uint32_t seen = 0;; seen = bfc_load_acquire(&freed)) {
        bool waits = is_free();
        syscall(SYS_futex, &freed, FUTEX_WAIT_PRIVATE, seen, waits ? &soon : NULL, NULL, 0);
        look_at_memory();
    }
    return unused;
}

static void start_giver(void) {
    static bool started;
    if (!bfc_exchange_acq_rel(&started, true) && !bfc_background_start(run_giver, NULL))
        bfc_log(BFC_LOG_WARN, "no thread gives host memory back: what was spilled stays pinned");
}

static void log_impossible(const struct bfc_arena *home) {
    static bool logged;
    if (!bfc_exchange_relaxed(&logged, true))
        bfc_log(BFC_LOG_INFO, "device %d: it cannot map host memory, so BFC_SPILL has no effect",
                (int)home->device);
}

static const struct bfc_memory_source host_memory = {
    .is_host = true,
    .gives_in_background = true,
    .over_limit = "BFC_SPILL would be exceeded",
    .take = bfc_host_memory_take,
    .give = bfc_host_memory_give,
};

/* Small blocks share a region; a larger block has its own, which goes back when it is freed. */
static void configure_pool(const struct bfc_options *options, struct bfc_pool_config *config) {
    bfc_pool_config_default(config);
    config->growth = BFC_GROWTH_FIXED;
    config->growth_size = options->growth_size;
    config->pending_budget = options->pending_budget;
}

/* Makes an arena of host memory for the context of `home`, its arena of device memory, to which the
 * new arena keeps a reference. NULL: the host has no memory. */
static struct bfc_arena *begin_arena(const struct bfc_driver *driver, struct bfc_arena *home) {
    const struct bfc_process *process = bfc_process();
    struct bfc_device *on = bfc_device_find(BFC_DEVICE_HOST);
    struct bfc_arena *arena =
        process && on ? bfc_arena_begin(&host_memory, home->context, home->id) : NULL;
    struct bfc_pool_config config;
    if (!arena)
        return NULL;
    bfc_arena_keep(home);
    arena->home = home;
    arena->on = on;
    arena->device = home->device;
    arena->device_total = home->device_total;
    arena->limit = process->options.spill;
    arena->pending_budget = process->options.pending_budget;
    configure_pool(&process->options, &config);
    int mode = home->free_mode == BFC_FREE_SYNC ? BFC_FREE_SYNC : BFC_FREE_LAZY;
    return bfc_arena_complete(arena, driver, mode, &config);
}

static struct bfc_arena *make_arena(const struct bfc_driver *driver, struct bfc_arena *home) {
    if (!bfc_host_memory_can_be_had(driver, home->device)) {
        log_impossible(home);
        return NULL;
    }
    start_giver();
    struct bfc_arena *arena = begin_arena(driver, home);
    return arena ? bfc_arena_publish(arena, home->id) : NULL;
}

static struct bfc_arena *find_or_make(const struct bfc_driver *driver, struct bfc_arena *home) {
    struct bfc_arena *arena = bfc_arena_host_of_context(home->context, home->id);
    if (!arena)
        arena = make_arena(driver, home);
    return arena ? bfc_arena_set_last(arena) : NULL;
}

bool bfc_spill_may_serve(const struct bfc_call *call) {
    const struct bfc_process *process = bfc_process_if_made();
    return process && !call->in_pool && call->bytes <= process->options.spill;
}

/* The longest wait of an allocation for host memory that is being given back. The wait is bounded,
 * because the driver's call that frees host memory may block for ever. */
#define LONGEST_WAIT_NS ((uint64_t)1000 * 1000 * 1000)
#define NAP_NS 500000L

/* Waits for the thread that gives host memory back. True: that thread has given back what it could,
 * or fewer bytes are reserved now than `before`, the number at the caller's failed attempt. False:
 * there is nothing to give back, the time is over, or a capture is under way. */
static bool wait_for_giver(const struct bfc_device *host, uint64_t before, uint64_t until_ns) {
    bool waited = false;
    wake_giver();
    while (bfc_load_relaxed(&host->reserved) >= before) {
        if (!bfc_load_seq_cst(&is_giving) && !is_free())
            return waited || bfc_load_relaxed(&host->reserved) < before;
        if (bfc_captures_exist() || bfc_now_ns() >= until_ns)
            return false;
        waited = true;
        bfc_nap(NAP_NS);
    }
    return true;
}

/* Allocates host memory. A pool of host memory does not give back free regions by itself when it
 * lacks memory (upstream.c), so the allocation waits for the thread that does. */
static CUresult allocate_host_memory(const struct bfc_driver *driver, struct bfc_arena *arena,
                                     size_t bytes, enum bfc_reuse_how how,
                                     struct bfc_outcome *outcome) {
    uint64_t until = bfc_now_ns() + LONGEST_WAIT_NS, before;
    CUresult result;
    do {
        before = bfc_load_relaxed(&arena->on->reserved);
        result = bfc_reuse_allocate(driver, arena, bytes, how, outcome);
    } while (result != CUDA_SUCCESS && outcome->status == BFC_OUT_OF_MEMORY &&
             wait_for_giver(arena->on, before, until));
    return result;
}

bool bfc_spill_serve(struct bfc_call *call) {
    struct bfc_arena *arena = find_or_make(call->driver, call->arena);
    struct bfc_outcome outcome = {.error = CUDA_SUCCESS};
    if (!arena)
        return false;
    CUresult result = allocate_host_memory(call->driver, arena, call->bytes, call->how, &outcome);
    if (result != CUDA_SUCCESS) {
        bfc_call_note_fatal(call, outcome.error);
        bfc_call_note_fatal(call, result);
        return false;
    }
    *call->pointer = outcome.pointer;
    call->arena = arena;
    call->status = BFC_OK;
    return true;
}
