/*
 * Arenas: their reference counts, the table of living arenas, and the count of threads that make
 * driver calls in an arena's context.
 *
 * No driver call is made under `table_lock`, and a pool's lock is never held here.
 */
#include "interpose/arena/arena.h"

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/numbers.h"
#include "interpose/arena/device.h"
#include "interpose/arena/region_map.h"
#include "interpose/arena/stream_frees.h"
#include "interpose/config/process.h"
#include "interpose/context/contexts.h"
#include "interpose/driver/current.h"
#include "interpose/fences/fences.h"
#include "interpose/host/thread_exit.h"
#include "interpose/stats/events.h"
#include "interpose/stats/published_segment.h"
#include "interpose/table/feature.h"
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
/* the list of living arenas; holds a reference to each; guarded by table_lock */
static struct bfc_arena *living;
static struct bfc_arena
    *lost;             /* a list of arenas whose contexts no hook saw end; guarded by table_lock */
static uint64_t begun; /* how many arenas were added to the table so far; guarded by table_lock */

__thread struct bfc_thread_arena bfc_thread_arena INITIAL_EXEC;

static void free_arena(struct bfc_arena *arena) {
    bfc_pool_destroy(arena->pool, false);
    BFC_TELL_FEATURES(arena_freed, arena);
    bfc_device_refund(arena, UINT64_MAX);
    bfc_fences_destroy(arena->fences);
    bfc_stream_frees_destroy(arena->stream_frees);
    bfc_arena_drop(arena->home);
    if (arena->stats.section != &arena->own_section)
        bfc_segment_return_section(arena->stats.section);
    free(arena);
}

void bfc_arena_drop(struct bfc_arena *arena) {
    if (arena && bfc_sub_fetch_acq_rel(&arena->references, 1) == 0)
        free_arena(arena);
}

void bfc_arena_keep(struct bfc_arena *arena) {
    bfc_add_fetch_relaxed(&arena->references, 1);
}

static void forget_thread(void *unused) {
    (void)unused;
    struct bfc_thread_arena last = bfc_thread_arena;
    bfc_thread_arena = (struct bfc_thread_arena){.arena = NULL};
    if (!bfc_process_if_made())
        return;
    bfc_arena_drop(last.arena);
    bfc_arena_drop(last.host);
}

struct bfc_arena *bfc_arena_set_last(struct bfc_arena *arena) {
    struct bfc_arena **last =
        bfc_arena_is_host(arena) ? &bfc_thread_arena.host : &bfc_thread_arena.arena;
    bfc_at_thread_exit(&bfc_thread_arena.releases_at_exit, forget_thread);
    bfc_arena_drop(*last);
    *last = arena;
    return arena;
}

/* The list of living arenas goes from the youngest to the oldest. `previous` may have left the
 * list, so the next arena is found by its sequence number. */
struct bfc_arena *bfc_arena_next(struct bfc_arena *previous) {
    pthread_mutex_lock(&table_lock);
    struct bfc_arena *arena = living;
    while (arena && previous && arena->sequence >= previous->sequence)
        arena = arena->next;
    if (arena)
        bfc_arena_keep(arena);
    pthread_mutex_unlock(&table_lock);
    bfc_arena_drop(previous);
    return arena;
}

struct bfc_arena *bfc_arena_next_on(CUdevice device, struct bfc_arena *previous) {
    struct bfc_arena *arena = bfc_arena_next(previous);
    while (arena && (arena->device != device || bfc_arena_is_host(arena)))
        arena = bfc_arena_next(arena);
    return arena;
}

struct bfc_arena *bfc_arena_next_host(struct bfc_arena *previous) {
    struct bfc_arena *arena = bfc_arena_next(previous);
    while (arena && !bfc_arena_is_host(arena))
        arena = bfc_arena_next(arena);
    return arena;
}

void bfc_arena_set_placer(struct bfc_arena *arena, const struct bfc_placer *placer) {
    bfc_store_seq_cst(&arena->placer, placer);
    bfc_store_seq_cst(&arena->plain_most, placer ? 0 : arena->plain_limit);
    /* before the stores above, another thread may have set plain_most to 0 after a fatal error */
    if (bfc_load_relaxed(&arena->fatal))
        bfc_store_relaxed(&arena->plain_most, 0);
}

void bfc_arena_let_plain(struct bfc_arena *arena) {
    bfc_store_seq_cst(&arena->plain_most, bfc_min(arena->device_total, arena->bypass_above));
    if (bfc_load_seq_cst(&arena->placer) || bfc_load_relaxed(&arena->fatal))
        bfc_store_relaxed(&arena->plain_most, 0);
}

bool bfc_arena_is_itself(const struct bfc_driver *driver, const struct bfc_arena *arena) {
    enum bfc_handle handle = bfc_handle_of(driver, arena->context, arena->id);
    return !bfc_load_acquire(&arena->ended) &&
           (handle == BFC_HANDLE_SAME ||
            (handle == BFC_HANDLE_DEAD && bfc_load_seq_cst(&arena->closers) != 0));
}

/* A thread that enters the arena increments `visitors` and then reads `closers`. A thread that is
 * about to end the arena's context increments `closers` and then reads `visitors`. So if both do so
 * at the same time, at least one of them sees the other. */
bool bfc_arena_enter(struct bfc_arena *arena) {
    bfc_fetch_add_seq_cst(&arena->visitors, 1);
    bool open = bfc_load_seq_cst(&arena->closers) == 0;
    bool itself = open && bfc_arena_is_itself(bfc_driver(), arena);
    if (itself)
        return true;
    bfc_arena_leave(arena);
    if (open)
        bfc_arena_lose(arena);
    return false;
}

CUresult bfc_arena_make_current(const struct bfc_driver *driver, struct bfc_arena *arena,
                                bool *pushed) {
    *pushed = false;
    if (bfc_arena_is_itself(driver, arena))
        return bfc_current_enter(driver, arena->context, pushed);
    bfc_arena_lose(arena);
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

void bfc_arena_leave(struct bfc_arena *arena) {
    bfc_fetch_sub_seq_cst(&arena->visitors, 1);
}

static bool is_open_or_ended(void *argument) {
    const struct bfc_arena *arena = argument;
    return bfc_load_seq_cst(&arena->closers) == 0 || bfc_load_acquire(&arena->ended);
}

static bool is_empty_or_ended(void *argument) {
    const struct bfc_arena *arena = argument;
    return bfc_load_seq_cst(&arena->visitors) == 0 || bfc_load_acquire(&arena->ended);
}

bool bfc_arena_await(struct bfc_arena *arena) {
    bfc_await(is_open_or_ended, arena, BFC_NS_PER_SECOND);
    return bfc_arena_enter(arena);
}

void bfc_arena_close(struct bfc_arena *arena) {
    bfc_fetch_add_seq_cst(&arena->closers, 1);
    bfc_await(is_empty_or_ended, arena, BFC_NS_PER_SECOND);
}

void bfc_arena_reopen(struct bfc_arena *arena) {
    bfc_fetch_sub_seq_cst(&arena->closers, 1);
}

static struct bfc_arena *find_living(CUcontext context, unsigned long long id, bool host) {
    for (struct bfc_arena *arena = living; arena; arena = arena->next)
        if (arena->context == context && (!id || arena->id == id) &&
            bfc_arena_is_host(arena) == host)
            return arena;
    return NULL;
}

static void set_state(const struct bfc_arena *arena, enum bfc_pool_state state) {
    bfc_store_release(&arena->stats.section->state, (uint64_t)state);
}

/* Moves the context's arena of device memory, and that of host memory, from the list of living
 * arenas to another list. The caller holds table_lock. */
static void unlink_arenas(CUcontext context, unsigned long long id, struct bfc_arena **list) {
    struct bfc_arena *arena, **link = &living;
    while ((arena = *link)) {
        if (arena->context != context || arena->id != id) {
            link = &arena->next;
            continue;
        }
        *link = arena->next;
        bfc_store_release(&arena->ended, true);
        /* this increment is never undone, so no thread enters the ended arena's context any more */
        bfc_fetch_add_seq_cst(&arena->closers, 1);
        set_state(arena, BFC_POOL_ENDED);
        arena->next = *list;
        bfc_store_release(list, arena);
        /* pages outlive the context, so their regions stay in the map until they are given back */
        if (!arena->has_pages)
            bfc_region_remove_owner(arena);
    }
}

void bfc_arena_unlink(CUcontext context, unsigned long long id, struct bfc_arena **list) {
    pthread_mutex_lock(&table_lock);
    unlink_arenas(context, id, list);
    pthread_mutex_unlock(&table_lock);
}

/* The caller has no reference, so `ended` may be freed already: the pointer is only compared. */
bool bfc_arena_lose(const struct bfc_arena *ended) {
    pthread_mutex_lock(&table_lock);
    const struct bfc_arena *arena = living;
    while (arena && arena != ended)
        arena = arena->next;
    if (arena)
        unlink_arenas(arena->context, arena->id, &lost);
    pthread_mutex_unlock(&table_lock);
    return arena;
}

bool bfc_arena_some_lost(void) {
    return bfc_load_acquire(&lost);
}

struct bfc_arena *bfc_arena_take_lost(void) {
    pthread_mutex_lock(&table_lock);
    struct bfc_arena *arena = lost;
    if (arena)
        bfc_store_release(&lost, arena->next);
    pthread_mutex_unlock(&table_lock);
    return arena;
}

/* Returns `owner` with a reference that the caller drops. NULL: `owner` is not in the table, so it
 * may be freed already. */
static struct bfc_arena *keep_if_living(const struct bfc_arena *owner) {
    pthread_mutex_lock(&table_lock);
    struct bfc_arena *arena = owner ? living : NULL;
    while (arena && arena != owner)
        arena = arena->next;
    if (arena)
        bfc_arena_keep(arena);
    pthread_mutex_unlock(&table_lock);
    return arena;
}

/* Moves the arena to the list of lost ones if its context has ended. Where contexts have no ids,
 * the context must have ended, since the driver has allocated the arena's memory anew. */
static bool lose_given_out(const struct bfc_driver *driver, const struct bfc_arena *arena) {
    bool ended =
        !driver->cuCtxGetId || bfc_handle_of(driver, arena->context, arena->id) != BFC_HANDLE_SAME;
    return ended && bfc_arena_lose(arena);
}

void bfc_arena_given_out(CUdeviceptr start, uint64_t bytes) {
    struct bfc_arena *arena;
    bool lost_one = true;
    while (lost_one && (arena = keep_if_living(bfc_region_overlapping(start, bytes)))) {
        lost_one = lose_given_out(bfc_driver(), arena);
        bfc_arena_drop(arena);
    }
}

static void log_begin_of_host(const struct bfc_arena *arena) {
    bfc_log(BFC_LOG_INFO,
            "device %d, context %llu: host memory begins to serve what does not fit on the device, "
            "up to %s in the process (BFC_SPILL)",
            (int)arena->device, arena->id, BFC_BYTES(arena->limit));
}

static void log_begin(const struct bfc_arena *arena) {
    char growth[16], policy[16], mode[16], limit[BFC_BYTES_TEXT] = "none";
    const struct bfc_process *process = bfc_process_if_made();
    if (!process || !bfc_log_shows(BFC_LOG_INFO))
        return;
    bfc_option_print(&process->options, "BFC_POLICY", policy, sizeof policy);
    bfc_option_print(&process->options, "BFC_GROWTH", growth, sizeof growth);
    bfc_option_print(&process->options, "BFC_FREE", mode, sizeof mode);
    if (arena->limit != UINT64_MAX)
        bfc_bytes_text(arena->limit, limit, sizeof limit);
    const char *as = "";
    if (arena->free_mode != process->options.free_mode)
        as = " as sync (no host memory for fences)";
    else if (arena->free_mode == BFC_FREE_ORDERED && bfc_contexts_are_several())
        as = " as lazy (there are several contexts)";
    bfc_log(BFC_LOG_INFO,
            "device %d, context %llu: a pool begins: policy %s, growth %s, limit %s, "
            "free %s%s%s",
            (int)arena->device, arena->id, policy, growth, limit, mode, as,
            arena->has_pages ? ", backing pages" : "");
}

struct bfc_arena *bfc_arena_publish(struct bfc_arena *arena, unsigned long long id) {
    bool host = bfc_arena_is_host(arena);
    pthread_mutex_lock(&table_lock);
    struct bfc_arena *result = find_living(arena->context, id, host);
    if (!result && !(host && arena->home->ended)) {
        arena->sequence = ++begun;
        arena->next = living;
        living = result = arena;
        set_state(arena, BFC_POOL_ACTIVE);
    }
    if (result)
        bfc_arena_keep(result);
    pthread_mutex_unlock(&table_lock);
    if (result != arena) {
        free_arena(arena);
        return result;
    }
    bfc_events_add_landmark(&arena->stats, BFC_EVENT_BEGIN, 0, 0);
    if (host)
        log_begin_of_host(arena);
    else
        log_begin(arena);
    return result;
}

static struct bfc_arena *find_and_keep(CUcontext context, unsigned long long id, bool host) {
    pthread_mutex_lock(&table_lock);
    struct bfc_arena *arena = find_living(context, id, host);
    if (arena)
        bfc_arena_keep(arena);
    pthread_mutex_unlock(&table_lock);
    return arena;
}

struct bfc_arena *bfc_arena_of_context(CUcontext context, unsigned long long id) {
    return find_and_keep(context, id, false);
}

struct bfc_arena *bfc_arena_host_of_context(CUcontext context, unsigned long long id) {
    return find_and_keep(context, id, true);
}

struct bfc_arena *bfc_arena_last_if_holds(const struct bfc_driver *driver, unsigned long long id,
                                          CUdeviceptr address) {
    struct bfc_arena *last = bfc_thread_arena.arena;
    CUcontext context = NULL;
    if (!bfc_arena_last_of(id) || bfc_region_owner(address) != last)
        return NULL;
    if (last->free_mode != BFC_FREE_SYNC && bfc_thread_arena.has_context)
        return last;
    bool is_current = driver->cuCtxGetCurrent(&context) == CUDA_SUCCESS && context == last->context;
    return is_current ? last : NULL;
}

struct bfc_arena *bfc_arena_living_of(CUdeviceptr address) {
    const struct bfc_driver *driver = bfc_driver();
    struct bfc_arena *arena = bfc_arena_of(address);
    if (!arena || bfc_arena_is_itself(driver, arena))
        return arena;
    bfc_arena_lose(arena);
    return NULL;
}

/* The caller has no reference, so `owner` may be freed already unless it is still in the table. */
struct bfc_arena *bfc_arena_take(struct bfc_arena *owner) {
    struct bfc_arena *arena = keep_if_living(owner);
    return arena ? bfc_arena_set_last(arena) : NULL;
}
