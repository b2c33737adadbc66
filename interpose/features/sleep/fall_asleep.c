/* Puts the process to sleep, by the steps that sleep.h describes. */
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/numbers.h"
#include "interpose/arena/arena.h"
#include "interpose/config/log.h"
#include "interpose/config/process.h"
#include "interpose/context/capture.h"
#include "interpose/context/contexts.h"
#include "interpose/features/sleep/store.h"
#include "interpose/features/sleep/turn.h"
#include "interpose/host/background.h"
#include "interpose/reuse/allocate.h"
#include "interpose/reuse/free_fence.h"
#include "interpose/reuse/settle_arena.h"
#include "interpose/stats/events.h"
#include "interpose/stats/published_segment.h"
#include "interpose/table/counter.h"

/* How long, in all, putting the process to sleep waits for threads that are inside calls and for
 * work of the device. FORCED_LIMIT_NS applies when a waiting job needs the memory while this
 * program goes on working: such a program may have much work queued. */
#define LIMIT_NS BFC_NS_PER_SECOND
#define FORCED_LIMIT_NS (10 * BFC_NS_PER_SECOND)
#define LOOK_NS UINT64_C(2000000)

static bool
    is_forced; /* whether the process falls asleep so that a job that waits gets the memory */
static uint64_t
    waits_until; /* when the waits for threads and work must end, by bfc_kernel_now_ns */

/* Returns why the process must not go on falling asleep; NULL: it may go on. */
static const char *find_interruption(void) {
    if (bfc_background_is_over())
        return "the process exits";
    if (bfc_turn_is_wanted(is_forced))
        return "the program used its memory meanwhile";
    for (const struct bfc_sleeping_arena *one = bfc_sleeping.arenas; one; one = one->next)
        if (bfc_sleeping_arena_ends(one))
            return "a context ends";
    return NULL;
}

static bool goes_on(void) {
    return !find_interruption();
}

static bool work_may_be_unseen(void) {
    return bfc_load_acquire(&bfc_segment_counters()->gate.state) == BFC_GATE_GIVEN_UP;
}

static bool is_ours(const struct bfc_arena *arena) {
    return !bfc_arena_is_host(arena);
}

/* Returns why some context of the process forbids sleep; NULL: none does. A context without an
 * arena, since nothing was allocated in it, forbids sleep: its work may use other contexts' memory,
 * and without the fences of an arena nothing can wait for that work. */
static const char *find_company(void) {
    struct bfc_arena *arena = NULL;
    unsigned own = 0;
    while ((arena = bfc_arena_next(arena)))
        own += is_ours(arena);
    bool unknown = bfc_contexts_hide() && bfc_reuse_has_company(bfc_driver()) &&
                   bfc_reuse_has_company(bfc_driver());
    return unknown || bfc_load_seq_cst(&bfc_contexts_known) > own
               ? "a context without memory of its own may use that of others"
               : NULL;
}

static const char *find_obstacle(void) {
    struct bfc_arena *arena = NULL;
    bool some = false;
    if (!bfc_counter)
        return "submissions are not counted: set BFC_GATE=on and BFC_BACKING=pages";
    if (work_may_be_unseen())
        return "work may be submitted unseen (BFC_GATE is off by itself)";
    while ((arena = bfc_arena_next(arena)))
        some |= arena->features[bfc_load_relaxed(&bfc_sleep_slot)] != NULL;
    const struct bfc_process *process = bfc_process_if_made();
    bool asked = process && process->options.backing != BFC_BACKING_MALLOC;
    return some ? NULL
           : asked
               ? "there are no pages here, though BFC_BACKING asks for them: BFC_LOG=info says why"
               : "no memory is of pages: set BFC_BACKING=pages";
}

/* Waits until no thread is inside a call that submits work. A thread that waits for the process to
 * wake does not count as inside. Returns why the process must stay awake, or NULL. */
static const char *await_threads(void) {
    uint64_t sum;
    while (!bfc_counter->count(&sum)) {
        const char *why = find_interruption();
        if (why || work_may_be_unseen())
            return why ? why : "work may be submitted unseen";
        if (bfc_kernel_now_ns() > waits_until)
            return "a thread is inside a call for long";
        bfc_nap((long)LOOK_NS / 20);
    }
    return bfc_captures_exist() ? "a capture is under way" : NULL;
}

static const char *await_fence(struct bfc_arena *arena, bfc_fence fence) {
    const char *why = NULL;
    while (!why && bfc_reuse_wait(arena, fence, LOOK_NS) < fence) {
        why = find_interruption();
        if (!why && bfc_load_seq_cst(&arena->closers))
            why = "a context ends";
        if (!why && bfc_kernel_now_ns() > waits_until)
            why = "work of the device did not end in time";
    }
    return why;
}

static const char *await_context(struct bfc_arena *arena) {
    bfc_fence fence;
    if (!arena->fences)
        return "the driver cannot record all work of a context (CUDA 12.5)";
    if (bfc_load_relaxed(&arena->fatal))
        return "a context has failed";
    if (!bfc_arena_enter(arena))
        return "a context ends";
    CUresult result = bfc_reuse_record(bfc_driver(), arena, &arena->context, 1, false, &fence);
    const char *why = result == CUDA_SUCCESS ? await_fence(arena, fence)
                                             : "the driver refused to record an event";
    bfc_arena_leave(arena);
    return why;
}

static const char *await_contexts(void) {
    struct bfc_arena *arena = NULL;
    const char *why = NULL;
    while (!why && (arena = bfc_arena_next(arena)))
        if (is_ours(arena))
            why = await_context(arena);
    if (why)
        bfc_arena_drop(arena);
    return why;
}

/* Whether the arena's memory may go back to the device. It must stay if other devices have access
 * to it, by peer access or a registration: no fence shows when they write to it. */
static bool may_sleep(struct bfc_arena *arena) {
    return arena->features[bfc_load_relaxed(&bfc_sleep_slot)] && !bfc_reuse_has_peers(arena) &&
           !bfc_load_acquire(&arena->registered) && !bfc_load_acquire(&arena->ended);
}

static const char *open_arenas(uint64_t *bytes) {
    struct bfc_arena *arena = NULL;
    const char *why = NULL;
    while ((arena = bfc_arena_next(arena))) {
        if (!may_sleep(arena))
            continue;
        bfc_reuse_settle(arena);
        bfc_pool_trim(arena->pool, UINT64_MAX);
        struct bfc_sleeping_arena *one = bfc_sleeping_arena_open(arena, *bytes, &why);
        if (!one) {
            bfc_arena_drop(arena);
            return why;
        }
        one->next = bfc_sleeping.arenas;
        bfc_sleeping.arenas = one;
        *bytes += one->bytes;
    }
    return *bytes ? NULL
                  : "no pages can sleep: exported, registered, a peer's, or regions "
                    "(BFC_BACKING=pages avoids these)";
}

static const char *chosen_place(void) {
    const struct bfc_process *process = bfc_process_if_made();
    return process ? process->options.sleep_to : "";
}

static const char *tell_unkept(char *text, size_t size, int error) {
    snprintf(text, size, "the contents could not be kept in %.48s: %s",
             chosen_place()[0] ? chosen_place() : "host memory", strerror(error));
    return text;
}

static const char *save_arenas(char *text, size_t size) {
    int error = 0;
    for (struct bfc_sleeping_arena *one = bfc_sleeping.arenas; one; one = one->next) {
        CUresult result = bfc_sleeping_arena_save(one, bfc_sleeping.file, goes_on, &error);
        const char *why = find_interruption();
        if (result == CUDA_ERROR_NOT_READY && why)
            return why;
        if (result == CUDA_ERROR_OPERATING_SYSTEM)
            return tell_unkept(text, size, error);
        snprintf(text, size, "the driver refused a copy (CUresult %d)", (int)result);
        if (result != CUDA_SUCCESS)
            return text;
    }
    error = bfc_sleep_store_flush(bfc_sleeping.file);
    return error ? tell_unkept(text, size, error) : NULL;
}

static const char *prepare_fall(char *text, size_t size) {
    uint64_t bytes = 0;
    const char *why = await_threads();
    why = why ? why : find_company();
    why = why ? why : await_contexts();
    why = why ? why : open_arenas(&bytes);
    if (why)
        return why;
    bfc_sleeping.file = bfc_sleep_store_open(chosen_place(), bytes, text, size);
    if (bfc_sleeping.file < 0)
        return text;
    why = save_arenas(text, size);
    return why ? why : find_interruption();
}

/* Returns how many bytes of the pools of device memory are still on the device, in pages or
 * regions. */
static uint64_t find_kept(void) {
    struct bfc_arena *arena = NULL;
    struct bfc_pool_stats stats;
    uint64_t kept = 0;
    while ((arena = bfc_arena_next(arena))) {
        if (!is_ours(arena))
            continue;
        bfc_pool_read_stats(arena->pool, &stats);
        kept += bfc_subtract_saturating(stats.reserved,
                                        bfc_load_relaxed(&arena->stats.section->pages.asleep));
    }
    return kept;
}

/* Gives the pages of all arenas back to the device. Stops when a thread waits to wake the process;
 * the remaining pages stay where they are. */
static void release_arenas(uint64_t began) {
    struct bfc_segment_sleep *told = bfc_sleep_told();
    uint64_t all = 0;
    for (struct bfc_sleeping_arena *one = bfc_sleeping.arenas; one; one = one->next) {
        uint64_t bytes = bfc_sleeping_arena_release(one, goes_on);
        bfc_events_add_landmark(&one->arena->stats, BFC_EVENT_ASLEEP, bfc_kernel_now_ns() - began,
                                bytes);
        all += bytes;
    }
    uint64_t kept = find_kept();
    bfc_store_relaxed(&told->kept, kept);
    bfc_store_relaxed(&told->fall_ns, bfc_kernel_now_ns() - began);
    bfc_fetch_add_relaxed(&told->falls, 1);
    snprintf(told->where, sizeof told->where, "%s", chosen_place()[0] ? chosen_place() : "memory");
    snprintf(told->why, sizeof told->why, "%s",
             kept ? "some is exported, registered, a peer's, or not of pages" : "");
    bfc_log(BFC_LOG_INFO, "asleep: %s went back to the device, %s stay; the contents are in %s",
            BFC_BYTES(all), BFC_BYTES(kept), told->where);
}

static void stay_awake(const char *why) {
    static unsigned seen;
    struct bfc_segment_sleep *told = bfc_sleep_told();
    snprintf(told->why, sizeof told->why, "%s", why);
    bfc_log_repeated(BFC_LOG_INFO, &seen, "the job stays awake: %s", why);
}

static bool fall_with_turn(void) {
    char text[112];
    uint64_t began = bfc_kernel_now_ns();
    const char *why = find_obstacle();
    if (why) {
        stay_awake(why);
        return false;
    }
    waits_until = began + (is_forced ? FORCED_LIMIT_NS : LIMIT_NS);
    bfc_sleep_enter_state(BFC_SLEEP_FALLING);
    why = bfc_counter->close(bfc_wake_up)
              ? prepare_fall(text, sizeof text)
              : "the kernel has no barrier for all threads (membarrier)";
    if (why) {
        stay_awake(why);
        bfc_sleeping_end();
        return false;
    }
    release_arenas(began);
    bfc_sleep_enter_state(BFC_SLEEP_ASLEEP);
    return true;
}

bool bfc_fall_asleep(bool forced) {
    bool asleep = true;
    if (!bfc_turn_take())
        return false;
    if (bfc_sleep_state() == BFC_SLEEP_AWAKE) {
        is_forced = forced;
        asleep = fall_with_turn();
        is_forced = false;
    }
    bfc_turn_give();
    return asleep;
}
