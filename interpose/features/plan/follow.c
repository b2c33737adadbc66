/*
 * Serves an arena's allocations from a plan.
 *
 * The tables by which an arena follows a plan (struct bfc_follower) are made once, and each thread
 * has its own position in the plan (struct bfc_course), so allocating takes no lock here. What
 * several threads write is atomic. The tables live as long as the arena, since a thread may still
 * use them when their plan is no longer followed.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/numbers.h"
#include "interpose/arena/arena.h"
#include "interpose/arena/upstream.h"
#include "interpose/config/log.h"
#include "interpose/config/process.h"
#include "interpose/context/capture.h"
#include "interpose/features/plan/follower.h"
#include "interpose/host/thread_exit.h"

enum {
    MISS = 10,   /* units that an allocation without its planned place takes off miss_budget
                    (cursor.h) */
    CHANGE = 15, /* units that each deviation from the plan adds to miss_budget */
    /* miss_budget is ample for an allocation if it is at least this many times what the allocation
     * would probably take off it */
    AMPLE = 32,
};

/* The course, one thread's planned allocations, that the calling thread used last: kept so that its
 * next allocation finds the course without a search. */
static __thread struct {
    /* id of the struct bfc_follower to which `course` belongs; 0: the thread has used no course */
    uint64_t follower;
    struct bfc_course *course;
    uint64_t thread; /* number of this thread in the process; 0: it has none yet */
    bool gives_back; /* whether end_thread is set up to be called when the thread exits */
} mine INITIAL_EXEC;

static const struct bfc_placer plan_placer;

/* The feature's state in an arena. NULL: no plan is ever followed there, since the arena is of host
 * memory or the host had no memory. */
struct plan_state {
    struct bfc_follower *follower;  /* atomic: the tables by which the current plan is followed;
                                       NULL: no plan is */
    struct bfc_follower *followers; /* atomic: a list of the tables of all plans that were ever
                                       followed in the arena */
};

unsigned bfc_plan_slot;

static inline struct plan_state *state_of(const struct bfc_arena *arena) {
    return arena->features[bfc_load_relaxed(&bfc_plan_slot)];
}

static inline struct bfc_follower *current_follower(const struct bfc_arena *arena) {
    const struct plan_state *state = state_of(arena);
    return LIKELY(state) ? bfc_load_acquire(&state->follower) : NULL;
}

static inline struct bfc_follower *first_follower(const struct bfc_arena *arena) {
    const struct plan_state *state = state_of(arena);
    return state ? bfc_load_acquire(&state->followers) : NULL;
}

bool bfc_plan_is_followed(const struct bfc_arena *arena) {
    return current_follower(arena);
}

void bfc_plan_begin(const struct bfc_driver *driver, struct bfc_arena *arena,
                    struct bfc_upstream *upstream) {
    (void)driver, (void)upstream;
    arena->features[bfc_load_relaxed(&bfc_plan_slot)] =
        bfc_arena_is_host(arena) ? NULL : calloc(1, sizeof(struct plan_state));
}

void bfc_plan_forget(struct bfc_arena *arena) {
    struct plan_state *state = state_of(arena);
    for (struct bfc_follower *follower = state ? state->followers : NULL; follower;) {
        struct bfc_follower *next = follower->next;
        bfc_follower_drop(follower);
        follower = next;
    }
    free(state);
}

/* Returns the arena's tables for the plan; makes them if it has none, and returns NULL if that
 * fails. No lock is needed: only one thread at a time adds tables to the arena's list, at first the
 * one that makes the arena, later the learning thread (learn/learn.c). */
static struct bfc_follower *find_or_make(struct bfc_arena *arena, const struct bfc_plan *plan) {
    struct bfc_follower *first = first_follower(arena), *follower = first;
    while (follower && follower->plan != plan)
        follower = follower->next;
    if (!follower && (follower = bfc_follower_make(arena, plan))) {
        follower->next = first;
        bfc_store_release(&state_of(arena)->followers, follower);
    }
    return follower;
}

static struct bfc_segment_plan *published_plan(struct bfc_arena *arena) {
    return &arena->stats.section->plan;
}

static void count_one(uint64_t *counter) {
    bfc_fetch_add_relaxed(counter, 1);
}

/* Writes the plan's figures for the arena's device into the segment. */
static void describe_plan(struct bfc_arena *arena, const struct bfc_follower *follower) {
    const struct bfc_plan *plan = follower->plan;
    struct bfc_segment_plan *to = published_plan(arena);
    uint64_t all = 0, prefix = 0, bound = 0;
    for (uint32_t i = 0; i < follower->course_count; i++) {
        all += follower->courses[i].count;
        prefix += follower->courses[i].prefix;
    }
    for (uint32_t a = 0; a < plan->header->arenas; a++)
        bound += plan->arenas[a].device == (uint32_t)arena->device ? plan->arenas[a].bound : 0;
    bfc_store_relaxed(&to->prefix, prefix);
    bfc_store_relaxed(&to->period, plan->header->period ? all - prefix : 0);
    bfc_store_relaxed(&to->bound, bound);
    bfc_store_relaxed(&to->peak, follower->bytes);
    bfc_store_relaxed(&to->source,
                      plan->automatic ? (uint64_t)BFC_PLAN_OF_LOOP : (uint64_t)BFC_PLAN_OF_FILE);
}

static void note_divergence(struct bfc_arena *arena, const struct bfc_slot *expected,
                            uint64_t came) {
    struct bfc_segment_plan *to = published_plan(arena);
    bfc_store_relaxed(&to->divergence, expected->event);
    bfc_store_relaxed(&to->expected, expected->size);
    bfc_store_relaxed(&to->came, came);
    bfc_store_relaxed(&to->diverged_ns, bfc_wall_clock_ns());
}

static void log_memory(const struct bfc_arena *arena, uint64_t bytes, enum bfc_status status) {
    static unsigned seen;
    if (status == BFC_OK)
        bfc_log(BFC_LOG_INFO, "device %d, context %llu: a plan is followed in %s",
                (int)arena->device, arena->id, BFC_BYTES(bytes));
    else
        bfc_log_repeated(BFC_LOG_INFO, &seen,
                         "device %d, context %llu: %s for a plan cannot be had: the job runs "
                         "without it for now",
                         (int)arena->device, arena->id, BFC_BYTES(bytes));
}

/* Whether to request the plan's memory from the driver now: never during a capture, and less often
 * after each refusal. A plan of BFC_PLAN=auto requests memory only where the loop begins again,
 * when the pool has least in use. */
static NOINLINE bool wants_memory(const struct bfc_follower *follower,
                                  const struct bfc_course *course) {
    bool begins = course->at == course->prefix || course->at == course->count;
    return (begins || !follower->plan->automatic) && !bfc_captures_exist() &&
           bfc_follower_may_ask(follower, course->round);
}

/* Reserves the plan's memory. If the device has no room for a plan of BFC_PLAN=auto, idle regions
 * go back to the driver, and the memory is requested once more. */
static enum bfc_status add_memory(struct bfc_arena *arena, const struct bfc_follower *follower,
                                  bfc_addr *start, int *error) {
    enum bfc_status status = bfc_pool_add_apart(arena->pool, follower->bytes, start, error);
    if (status != BFC_OUT_OF_MEMORY || !follower->plan->automatic)
        return status;
    bfc_pool_trim_unplanned(arena->pool, 0);
    return bfc_pool_add_apart(arena->pool, follower->bytes, start, error);
}

/* Publishes, the first time, what the pool had reserved before it followed a plan of BFC_PLAN=auto,
 * so that readers of the segment can compute what the plan saves. */
static void note_before(struct bfc_arena *arena, const struct bfc_follower *follower) {
    struct bfc_pool_stats stats;
    if (!follower->plan->automatic || bfc_load_relaxed(&published_plan(arena)->before))
        return;
    bfc_pool_read_stats(arena->pool, &stats);
    bfc_store_relaxed(&published_plan(arena)->before, stats.reserved);
}

/* Returns the error with which the job could not be woken, or 0. */
static int take_memory(struct bfc_arena *arena, struct bfc_follower *follower, uint32_t round) {
    bfc_addr start = 0;
    int error = 0;
    enum bfc_status status = add_memory(arena, follower, &start, &error);
    if (status == BFC_ASLEEP)
        return error;
    log_memory(arena, follower->bytes, status);
    if (status != BFC_OK) {
        bfc_store_relaxed(&follower->refused_round, round);
        return 0;
    }
    bfc_addr first = (start + BFC_ALIGNMENT - 1) & ~(BFC_ALIGNMENT - 1);
    bfc_store_seq_cst(&follower->memory, first);
    /* Another thread may have called bfc_plan_leave meanwhile, which opens the plan's memory to
     * every allocation. Either it has seen `memory`, or this check sees that the plan is no longer
     * followed, and this thread opens the memory instead. */
    if (bfc_load_seq_cst(&state_of(arena)->follower) != follower)
        bfc_pool_set_apart(arena->pool, first, false);
    bfc_store_relaxed(&published_plan(arena)->memory, follower->bytes);
    bfc_events_add_landmark(&arena->stats, BFC_EVENT_PLAN_FOLLOWED, first, follower->bytes);
    return 0;
}

/* Returns what take_memory returns; 0 also if the memory was not requested. */
static NOINLINE int ask_for_memory(struct bfc_arena *arena, struct bfc_follower *follower,
                                   uint32_t round) {
    int error = 0;
    if (bfc_exchange_acquire(&follower->asks, 1))
        return 0;
    if (!bfc_load_acquire(&follower->memory)) {
        note_before(arena, follower);
        error = take_memory(arena, follower, round);
    }
    bfc_store_release(&follower->asks, 0);
    return error;
}

/* Whether the plan's memory still begins at this address. It does not if its region went back to
 * the device and another one took the address, or if pages of it moved elsewhere. */
static bool is_there(const struct bfc_arena *arena, const struct bfc_follower *follower,
                     bfc_addr memory) {
    struct bfc_block_info block;
    return bfc_pool_find(arena->pool, memory, &block) && block.planned &&
           memory - block.region_start < BFC_ALIGNMENT && block.region_size >= follower->bytes;
}

/* Checks whether the plan's memory is gone. If so, the plan has none from now on, and the pages
 * that are left of it are opened to every allocation. */
static void note_gone(struct bfc_arena *arena, struct bfc_follower *follower, bfc_addr memory) {
    struct bfc_block_info block;
    if (is_there(arena, follower, memory) ||
        !bfc_compare_exchange_acq_rel(&follower->memory, &memory, (bfc_addr)0))
        return;
    bfc_store_relaxed(&published_plan(arena)->memory, 0);
    if (bfc_pool_find(arena->pool, memory, &block) && block.paged) {
        bfc_pool_set_apart(arena->pool, memory, false);
        bfc_follower_rest(follower);
    }
}

/* Keeps the plan's memory for planned blocks, or, if `apart` is false, opens it to every
 * allocation. */
static void set_apart(struct bfc_arena *arena, struct bfc_follower *follower, bool apart) {
    bfc_addr memory = bfc_load_seq_cst(&follower->memory);
    if (memory && is_there(arena, follower, memory))
        bfc_pool_set_apart(arena->pool, memory, apart);
    else if (memory)
        note_gone(arena, follower, memory);
}

uint64_t bfc_plan_trim_replaced(struct bfc_arena *arena) {
    const struct bfc_follower *follower = current_follower(arena);
    bfc_addr memory = follower ? bfc_load_acquire(&follower->memory) : 0;
    return memory ? bfc_pool_trim_unplanned(arena->pool, memory) : 0;
}

bool bfc_plan_look_ahead(struct bfc_arena *arena) {
    struct bfc_follower *follower = current_follower(arena);
    return follower && bfc_follower_look_ahead(follower);
}

bool bfc_plan_follow(struct bfc_arena *arena, const struct bfc_plan *plan, uint32_t event) {
    static uint64_t ids;
    struct bfc_follower *follower = state_of(arena) ? find_or_make(arena, plan) : NULL;
    if (!follower)
        return false;
    if (current_follower(arena))
        bfc_plan_leave(arena);
    for (uint32_t i = 0; i < follower->course_count; i++) {
        bfc_cursor_begin(&follower->courses[i], event);
        bfc_store_relaxed(&follower->courses[i].owner, (uint64_t)0);
    }
    bfc_store_relaxed(&follower->refused_round, 0);
    bfc_store_release(&follower->id, bfc_add_fetch_relaxed(&ids, 1));
    describe_plan(arena, follower);
    set_apart(arena, follower, true);
    bfc_store_release(&state_of(arena)->follower, follower);
    bfc_arena_set_placer(arena, &plan_placer);
    return true;
}

void bfc_plan_leave(struct bfc_arena *arena) {
    struct plan_state *state = state_of(arena);
    struct bfc_follower *follower =
        state ? bfc_exchange_seq_cst(&state->follower, (struct bfc_follower *)NULL) : NULL;
    if (!follower)
        return;
    bfc_arena_set_placer(arena, NULL);
    set_apart(arena, follower, false);
    bfc_store_relaxed(&published_plan(arena)->source, (uint64_t)BFC_PLAN_NONE);
}

static bool is_better(const struct bfc_follower *follower, const struct bfc_follower *other) {
    if (!other || !follower->plan->lead != !other->plan->lead)
        return !other || follower->plan->lead;
    return bfc_load_relaxed(&follower->id) > bfc_load_relaxed(&other->id);
}

const struct bfc_plan *bfc_plan_best_known(const struct bfc_arena *arena) {
    const struct bfc_follower *best = NULL;
    for (const struct bfc_follower *follower = first_follower(arena); follower;
         follower = follower->next)
        if (is_better(follower, best))
            best = follower;
    return best ? best->plan : NULL;
}

static bool is_followed(CUdevice device) {
    struct bfc_arena *arena = NULL;
    while ((arena = bfc_arena_next_on(device, arena)))
        if (current_follower(arena)) {
            bfc_arena_drop(arena);
            return true;
        }
    return false;
}

static void log_unplanned_device(CUdevice device) {
    static bool logged;
    if (!bfc_exchange_acquire(&logged, true))
        bfc_log(BFC_LOG_ERROR,
                "BFC_PLAN=%.200s: it plans nothing on device %d; the job runs without a plan there",
                bfc_process()->options.plan, (int)device);
}

static void follow_first(struct bfc_arena *arena, const struct bfc_plan *plan) {
    if (!is_followed(arena->device) && !bfc_plan_follow(arena, plan, 0))
        log_unplanned_device(arena->device);
}

/* If several contexts begin at once, only one of them follows the plan of BFC_PLAN=FILE. */
static pthread_mutex_t beginning = PTHREAD_MUTEX_INITIALIZER;

void bfc_plan_arena_publishing(struct bfc_arena *made) {
    const struct bfc_plan *plan = bfc_plan_of_file();
    if (!plan)
        return;
    pthread_mutex_lock(&beginning);
    follow_first(made, plan);
}

/* Looks up free places (gaps.h) for allocations that the plan does not foresee. Only a part is
 * looked up here; the thread of learn.c does the rest later. */
void bfc_plan_arena_published(struct bfc_arena *published, bool is_ours) {
    if (!bfc_plan_of_file())
        return;
    pthread_mutex_unlock(&beginning);
    if (is_ours)
        bfc_plan_look_ahead(published);
}

static uint64_t own_number(void) {
    static uint64_t numbers;
    if (!mine.thread)
        mine.thread = bfc_add_fetch_relaxed(&numbers, 1);
    return mine.thread;
}

/* Takes a course, one thread's planned allocations, for the calling thread if no thread owns it and
 * its next planned allocation matches this size. The size is matched against a copy of the course,
 * since another thread may take the course and move its position during the search. */
static bool take_anchor(struct bfc_course *course, uint64_t size) {
    uint64_t none = 0;
    if (bfc_load_acquire(&course->owner))
        return false;
    struct bfc_course still = *course;
    still.at = bfc_load_relaxed(&course->at);
    return bfc_cursor_look(&still, size).same &&
           bfc_compare_exchange_acq_rel(&course->owner, &none, own_number());
}

/* Returns the course (the allocations that the plan has for one thread) that the calling thread
 * owns already, else the first one that it can take; NULL: there is none. */
static struct bfc_course *find_course_of_thread(struct bfc_follower *follower, uint64_t size) {
    struct bfc_course *courses = follower->courses;
    for (uint32_t i = 0; i < follower->course_count; i++)
        if (bfc_load_relaxed(&courses[i].owner) == own_number())
            return &courses[i];
    for (uint32_t i = 0; i < follower->course_count; i++)
        if (take_anchor(&courses[i], size))
            return &courses[i];
    return NULL;
}

static void give_back_places(struct bfc_follower *follower) {
    for (uint32_t i = 0; i < follower->course_count; i++) {
        struct bfc_course *course = &follower->courses[i];
        if (bfc_load_relaxed(&course->owner) != own_number())
            continue;
        if (course->periodic)
            bfc_cursor_begin(course, course->slots[course->prefix].event);
        bfc_store_release(&course->owner, (uint64_t)0);
    }
}

/* When a thread ends, its positions in plans are set back to the beginning of the loop, so that a
 * later thread that does the same can take them over. */
static void end_thread(void *unused) {
    (void)unused;
    struct bfc_arena *arena = NULL;
    mine.gives_back = false;
    mine.follower = 0;
    while (bfc_process_if_made() && (arena = bfc_arena_next(arena)))
        for (struct bfc_follower *follower = first_follower(arena); follower;
             follower = follower->next)
            give_back_places(follower);
}

static NOINLINE struct bfc_course *take_course(struct bfc_follower *follower, uint64_t id,
                                               uint64_t size) {
    struct bfc_course *course = find_course_of_thread(follower, size);
    if (course) {
        bfc_at_thread_exit(&mine.gives_back, end_thread);
        mine.follower = id;
        mine.course = course;
    }
    return course;
}

static inline struct bfc_course *find_own_course(struct bfc_follower *follower, uint64_t size) {
    uint64_t id = bfc_load_acquire(&follower->id);
    return LIKELY(mine.follower == id) ? mine.course : take_course(follower, id, size);
}

struct call {
    struct bfc_arena *arena;
    struct bfc_follower *follower;
    struct bfc_course *course;
    struct bfc_match match;
    /* the size that the program asked for, and that size rounded by bfc_plan_round */
    uint64_t bytes, size;
    unsigned flags;
    /* a planned allocation whose place this call has found occupied; NULL: there is none */
    const struct bfc_slot *refused;
    struct bfc_block_info *block;
};

/* Allocates at this offset of the plan's memory. */
static inline enum bfc_status take_at(const struct call *call, uint64_t offset,
                                      bfc_addr below[BFC_PLACE_HINTS]) {
    bfc_addr memory = bfc_load_acquire(&call->follower->memory);
    if (UNLIKELY(!memory || offset > call->follower->bytes - call->size))
        return BFC_OUT_OF_MEMORY;
    enum bfc_status status = bfc_pool_allocate_at(call->arena->pool, memory + offset, call->bytes,
                                                  call->flags, below, call->block);
    if (UNLIKELY(status == BFC_UNKNOWN_POINTER))
        note_gone(call->arena, call->follower, memory);
    return status;
}

/* Allocates at the place of the planned allocation that matches this one. If none matches, uses the
 * place of the planned allocation that was expected, if that is large enough. */
static inline enum bfc_status take_planned(const struct call *call) {
    struct bfc_slot *slot = &call->course->slots[call->match.at];
    if (UNLIKELY(!call->match.known || slot->offset == BFC_NO_PLACE || call->size > slot->size ||
                 slot == call->refused))
        return BFC_OUT_OF_MEMORY;
    return take_at(call, slot->offset, slot->below);
}

/* Allocates in the smallest gap that fits: a place that the plan leaves free while the expected
 * block would live. If that is occupied, larger gaps mostly are too, and are not tried. */
static enum bfc_status take_gap(const struct call *call) {
    struct bfc_follower *follower = call->follower;
    const struct bfc_slot *slot = &call->course->slots[call->match.at];
    uint64_t align = call->size < BFC_PLAN_LARGE ? BFC_PLAN_SMALL : BFC_PLAN_LARGE;
    const struct bfc_gaps *gaps = call->match.known ? bfc_follower_gaps(follower, slot) : NULL;
    for (uint32_t i = 0; gaps && i < gaps->count; i++) {
        const struct bfc_gap *gap = &gaps->list[i];
        uint64_t start = (gap->start + align - 1) & ~(align - 1);
        bfc_addr below[BFC_PLACE_HINTS] = {bfc_load_relaxed(&follower->memory) + gap->before};
        if (start + call->size <= gap->start + gap->size)
            return take_at(call, start, below);
    }
    return BFC_OUT_OF_MEMORY;
}

/* Estimates how many units the allocation takes off miss_budget (cursor.h) if it lies in the plan's
 * memory, where planned blocks may then lose their places to it. It is assumed to live as long as
 * the block that was expected instead. The estimate rises with the number of planned blocks that
 * are allocated in that time, and with the sizes of those blocks and of the allocation. */
static uint64_t probable_misses(const struct call *call) {
    const struct bfc_plan *plan = call->follower->plan;
    const struct bfc_plan_header *header = plan->header;
    const struct bfc_plan_event *event = &plan->events[call->course->slots[call->match.at].event];
    uint64_t ticks = bfc_min(event->death - event->birth, header->period_ticks);
    uint64_t births = ticks * header->period / header->period_ticks + 1;
    return MISS * births * (call->size + call->follower->mean) / call->follower->bytes + 1;
}

/* Whether the allocation may lie in the plan's memory: miss_budget (cursor.h) is at least `times`
 * what the allocation would probably take off it. False if it did not come instead of a planned
 * block of the loop, since then nothing is known about how long it will live. */
static bool may_displace(const struct call *call, int64_t times) {
    const struct bfc_course *course = call->course;
    return course->miss_budget > 0 && call->match.known && call->match.at >= course->prefix &&
           course->periodic && course->slots[call->match.at].offset != BFC_NO_PLACE &&
           course->miss_budget / times >= (int64_t)probable_misses(call);
}

/* Serves an allocation that has no planned place or whose place is not free: from a gap of the
 * plan, else from the pool. If many planned allocations may still lose their places (miss_budget is
 * ample), free parts of the plan's memory are tried before other regions, so that the other regions
 * become idle. If miss_budget suffices but is not ample, those parts are tried only before the pool
 * takes a new region. */
static NOINLINE enum bfc_status allocate_otherwise(const struct call *call) {
    struct bfc_pool *pool = call->arena->pool;
    enum bfc_status status = take_gap(call);
    if (status != BFC_OK && may_displace(call, AMPLE))
        status = bfc_pool_allocate_apart(pool, call->bytes, call->block);
    if (status == BFC_OK)
        return status;
    unsigned flags = call->flags | (may_displace(call, 1) ? BFC_ALLOCATE_APART : 0);
    return bfc_pool_allocate(pool, call->bytes, flags, call->block);
}

/* Counts an allocation that got no planned place: as unplanned if the planned allocation that
 * matches it has no place in the plan, else as a miss. A plan of BFC_PLAN=auto counts none before
 * it has requested its memory. */
static NOINLINE void note_missed(const struct call *call) {
    struct bfc_segment_plan *to = published_plan(call->arena);
    if (call->follower->plan->automatic && !bfc_load_relaxed(&call->follower->memory) &&
        !bfc_load_relaxed(&call->follower->refused_round))
        return;
    const struct bfc_slot *slot = &call->course->slots[call->match.at];
    if (call->match.known && call->match.same && slot->offset == BFC_NO_PLACE) {
        count_one(&to->unplanned);
        return;
    }
    count_one(&to->missed);
    call->course->miss_budget -= MISS;
    if (call->match.known && call->match.same)
        count_one(&to->busy);
}

/* Whether the allocation is a new deviation from the plan. It is not if it matches an earlier
 * planned allocation and only comes late: that deviation was counted when the planned one was
 * skipped. */
static bool is_change(const struct bfc_course *course, const struct bfc_match *match) {
    return !match->jumped || match->next_round || match->at >= course->at;
}

/* Counts an allocation that is not the one that the plan expects next. */
static NOINLINE void note_unexpected(const struct call *call) {
    struct bfc_course *course = call->course;
    if (is_change(course, &call->match)) {
        course->miss_budget += CHANGE;
        course->earned += CHANGE;
    }
    if (course->at < course->count)
        note_divergence(call->arena, &course->slots[course->at], call->size);
    if (call->match.jumped)
        count_one(&published_plan(call->arena)->resumed);
}

/* Bounds miss_budget (cursor.h) at the end of a repetition of the loop: the most is twice what the
 * deviations of the repetition added, the least is -MISS for each planned allocation. */
static void limit_miss_budget(struct bfc_course *course) {
    int64_t least = -(int64_t)course->count * MISS, most = 2 * course->earned;
    course->miss_budget = course->miss_budget > most ? most : course->miss_budget;
    course->miss_budget = course->miss_budget < least ? least : course->miss_budget;
    course->earned = 0;
}

/* To be called when a repetition of the loop has begun, or the position in the plan was lost or
 * found again: counts which of these has happened, bounds the miss budget, and keeps the plan's
 * memory for planned blocks while the position is known. */
static NOINLINE void count_transition(const struct call *call, bool was_lost) {
    struct bfc_course *course = call->course;
    if (course->lost) {
        count_one(&published_plan(call->arena)->lost);
        bfc_events_add_landmark(&call->arena->stats, BFC_EVENT_PLAN_LOST, 0, call->size);
    } else
        count_one(was_lost ? &published_plan(call->arena)->resumed
                           : &published_plan(call->arena)->periods);
    limit_miss_budget(course);
    set_apart(call->arena, call->follower, !course->lost);
}

static inline void pass_event(const struct call *call) {
    struct bfc_course *course = call->course;
    bool was_lost = course->lost;
    uint32_t round = course->round;
    if (UNLIKELY(!call->match.same || call->match.jumped) && call->match.known)
        note_unexpected(call);
    bfc_cursor_pass(course, &call->match, call->size);
    if (UNLIKELY(course->round != round || course->lost != was_lost))
        count_transition(call, was_lost);
}

static inline enum bfc_status allocate_planned(struct call *call) {
    enum bfc_status status = take_planned(call);
    bool followed = status == BFC_OK;
    if (UNLIKELY(!followed))
        status = allocate_otherwise(call);
    if (UNLIKELY(status != BFC_OK && (call->flags & BFC_ALLOCATE_HIT_ONLY)))
        /* not counted, as the caller repeats the allocation without BFC_ALLOCATE_HIT_ONLY */
        return status;
    if (LIKELY(followed))
        count_one(&published_plan(call->arena)->followed);
    else
        note_missed(call);
    pass_event(call);
    return status;
}

/* The fast path: serves an allocation that the plan expects next and whose place is free. False:
 * nothing has changed, and `*refused` is set if the place was not free. */
static inline bool take_next(struct bfc_arena *arena, struct bfc_follower *follower, uint64_t bytes,
                             uint64_t size, unsigned flags, const struct bfc_slot **refused,
                             struct bfc_block_info *block) {
    struct bfc_course *course = mine.course;
    if (UNLIKELY(mine.follower != bfc_load_relaxed(&follower->id) || course->lost ||
                 course->at >= course->count))
        return false;
    struct bfc_slot *slot = &course->slots[course->at];
    bfc_addr memory = bfc_load_relaxed(&follower->memory);
    if (UNLIKELY(slot->size != size || slot->offset == BFC_NO_PLACE || !memory))
        return false;
    if (UNLIKELY(bfc_pool_allocate_at(arena->pool, memory + slot->offset, bytes, flags, slot->below,
                                      block) != BFC_OK)) {
        *refused = slot;
        return false;
    }
    slot->matched = course->round;
    course->at++;
    course->unmatched = 0;
    count_one(&published_plan(arena)->followed);
    return true;
}

static bool take_as_planned(struct bfc_arena *arena, uint64_t bytes, struct bfc_block_info *block) {
    struct bfc_follower *follower = current_follower(arena);
    const struct bfc_slot *refused;
    return follower && take_next(arena, follower, bytes, bfc_plan_round(bytes), 0, &refused, block);
}

/* Serves an allocation that the plan does not expect next, or whose planned place is not free. */
static NOINLINE enum bfc_status find_out(struct bfc_arena *arena, struct bfc_follower *follower,
                                         uint64_t bytes, unsigned flags,
                                         const struct bfc_slot *refused,
                                         struct bfc_block_info *block) {
    uint64_t size = bfc_plan_round(bytes);
    struct bfc_course *course = find_own_course(follower, size);
    if (UNLIKELY(!course || bytes > follower->bytes)) {
        enum bfc_status status = bfc_pool_allocate(arena->pool, bytes, flags, block);
        /* The caller repeats an allocation that fails with BFC_ALLOCATE_HIT_ONLY, so it is not
         * counted here. */
        if (status == BFC_OK || !(flags & BFC_ALLOCATE_HIT_ONLY))
            count_one(&published_plan(arena)->missed);
        return status;
    }
    int error = 0; /* with which the job could not be woken */
    if (UNLIKELY(!bfc_load_relaxed(&follower->memory)) && wants_memory(follower, course)) {
        if (flags & BFC_ALLOCATE_HIT_ONLY)
            /* the caller repeats the allocation without BFC_ALLOCATE_HIT_ONLY; then the memory is
             * requested */
            return BFC_OUT_OF_MEMORY;
        error = ask_for_memory(arena, follower, course->round);
        /* only what is there without another attempt to wake the job */
        flags |= error ? BFC_ALLOCATE_HIT_ONLY : 0;
    }
    struct call call = {.arena = arena,
                        .follower = follower,
                        .course = course,
                        .match = bfc_cursor_look(course, size),
                        .bytes = bytes,
                        .size = size,
                        .flags = flags,
                        .refused = refused,
                        .block = block};
    enum bfc_status status = allocate_planned(&call);
    if (LIKELY(!error || status == BFC_OK))
        return status;
    block->error = error;
    return BFC_ASLEEP;
}

static enum bfc_status allocate_by_plan(struct bfc_arena *arena, uint64_t bytes, unsigned flags,
                                        struct bfc_block_info *block) {
    struct bfc_follower *follower = current_follower(arena);
    if (UNLIKELY(!follower)) /* another thread has stopped following the plan meanwhile */
        return bfc_pool_allocate(arena->pool, bytes, flags, block);
    const struct bfc_slot *refused = NULL;
    if (take_next(arena, follower, bytes, bfc_plan_round(bytes), flags, &refused, block))
        return BFC_OK;
    return find_out(arena, follower, bytes, flags, refused, block);
}

static const struct bfc_placer plan_placer = {.allocate = allocate_by_plan,
                                              .take = take_as_planned};
