/* The thread that learns: it alone changes a learner that is in the list. */
#include "interpose/features/plan/learn/learn.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/numbers.h"
#include "interpose/arena/arena.h"
#include "interpose/config/log.h"
#include "interpose/config/process.h"
#include "interpose/features/plan/learn/learned_loops.h"
#include "interpose/host/background.h"
#include "interpose/reuse/settle_arena.h"
#include "pool/pages.h"

#define FIRST_LOOK 24 /* notes */
#define PLANNING_SECONDS 2.0
#define LEAST_SHARE 8 /* of the most that was ever in use, which a loop must have to be planned */
#define LOOKING_SHARE 32 /* looking takes at most one part in so many of a processor */
#define AHEAD_SHARE 8    /* and so does looking up gaps of a plan */
#define QUICK_NAP_NS 2000000
#define SLOW_NAP_NS 50000000
#define LONGEST_NAP_NS BFC_NS_PER_SECOND
#define NAP_SHARE 8  /* while nothing comes a nap is so small a part of how long that has been */
#define MOST_ENDED 8 /* arenas that nobody but us has still, each with its pool's addresses */
#define SHORTEST_PAUSE_NS (BFC_NS_PER_SECOND / 2)
#define LONGEST_PAUSE_NS (60 * BFC_NS_PER_SECOND)
#define TRIMS 4
#define BAD_PERIODS 4
#define POOR_PERIODS 32u /* doubled by each learned_loop */
#define POOR_WEIGHT 4    /* of one in which a third misses; 1: of one in which a tenth does */
#define NICENESS 10      /* with 19 a busy machine would never get to it */
#define PAUSE_TIMES 4    /* as long as the notes took */

enum learner_state { LISTENS, PAUSES, FOLLOWS, HAS_FILE };

/* One arena, with a reference. */
struct learner {
    struct bfc_arena *arena;
    struct bfc_pool_note *notes; /* mapped, BFC_LEARN_NOTES; NULL: it follows BFC_PLAN=FILE */
    enum learner_state state;
    bool whole;                /* the notes have all calls since the context began */
    uint64_t next_look;        /* notes */
    uint64_t next_look_ns;     /* not before that */
    uint64_t next_ahead_ns;    /* nor gaps of its plan before that */
    uint64_t since_ns;         /* in this state */
    uint64_t pause_ns;         /* the next one */
    uint64_t looked, moved;    /* the last look: notes, and bytes of pages that had moved */
    uint64_t trims;            /* of what the plan has replaced: tries that are left */
    uint64_t periods;          /* that had been gone through when the plan began */
    uint64_t followed, missed; /* when it was last looked whether the plan still fits */
    uint64_t seen;             /* calls, when it was last attended to */
    unsigned bad_periods;      /* in a row... */
    unsigned most_bad_periods; /* ...at so many a plan is left */
    unsigned poor_periods;     /* by their weights, less those that were not */
    const struct bfc_learned_loop *follows;
    struct bfc_learned_loops learned_loops;
    struct learner *next;
};

static struct learner *new_learners; /* atomic: a list that the thread takes over */
static uint32_t arrivals;            /* atomic: new_learners ever; the thread sleeps on it */
static unsigned taught;              /* atomic: learners that are not dismissed yet */

/* ---- taking notes ---- */

static void take_notes(struct learner *learner) {
    madvise(learner->notes, BFC_LEARN_NOTES * sizeof *learner->notes, MADV_DONTNEED);
    bfc_pool_take_notes(learner->arena->pool, learner->notes, BFC_LEARN_NOTES);
    learner->state = LISTENS;
    learner->next_look = FIRST_LOOK;
    learner->looked = 0;
    learner->since_ns = bfc_now_ns();
}

static void stop_listening(struct learner *learner, enum learner_state state) {
    bfc_pool_take_notes(learner->arena->pool, NULL, 0);
    learner->whole = false;
    learner->state = state;
    learner->since_ns = bfc_now_ns();
}

/* Nothing repeats in all that could be noted. */
static void pause_for_long(struct learner *learner) {
    uint64_t took = bfc_now_ns() - learner->since_ns;
    uint64_t pause =
        took * PAUSE_TIMES > learner->pause_ns ? took * PAUSE_TIMES : learner->pause_ns;
    stop_listening(learner, PAUSES);
    learner->pause_ns = pause < LONGEST_PAUSE_NS / 2 ? pause : LONGEST_PAUSE_NS / 2;
    learner->pause_ns *= 2;
}

/* ---- following ---- */

/* The notes that have come since the look tell how far the program has gone on meanwhile. */
static uint32_t position_now(const struct learner *learner, struct bfc_position position,
                             uint64_t looked) {
    uint64_t passed = 0, now = bfc_pool_notes(learner->arena->pool);
    for (uint64_t i = looked; i < now; i++)
        passed += learner->notes[i].bytes != 0;
    uint32_t period = position.learned_loop->plan.header->period;
    return position.learned_loop->plan.header->prefix +
           (uint32_t)((position.event + passed) % period);
}

/* What the follower tells. */
static const struct bfc_segment_plan *published_plan(const struct learner *learner) {
    return &learner->arena->stats.section->plan;
}

static void read_progress(const struct learner *learner, uint64_t *followed, uint64_t *missed) {
    *followed = bfc_load_relaxed(&published_plan(learner)->followed) +
                bfc_load_relaxed(&published_plan(learner)->unplanned);
    *missed = bfc_load_relaxed(&published_plan(learner)->missed);
}

static void follow_loop(struct learner *learner, struct bfc_position position, uint64_t looked) {
    if (!bfc_background_begin())
        return;
    bool follows = bfc_plan_follow(learner->arena, &position.learned_loop->plan,
                                   position_now(learner, position, looked));
    bfc_background_end();
    if (!follows)
        return;
    learner->follows = position.learned_loop;
    learner->pause_ns = SHORTEST_PAUSE_NS;
    learner->trims = TRIMS;
    learner->learned_loops.avoided = NULL;
    learner->bad_periods = learner->poor_periods = 0;
    learner->periods = bfc_load_relaxed(&published_plan(learner)->periods);
    read_progress(learner, &learner->followed, &learner->missed);
    stop_listening(learner, FOLLOWS);
}

/* ---- looking ---- */

/*
 * With pages a plan is for what keeps pages on the move. Where they are at rest, or sizes vary, the
 * pool holds little more than what lives; a plan sets memory apart, and that may be more. Returns
 * from which note on they were seen to move; UINT64_MAX: there are none, so any loop is planned; 0:
 * they rest, so none is.
 */
static uint64_t moving_from(struct learner *learner, uint64_t count) {
    struct bfc_page_stats pages;
    if (!bfc_pool_page_stats(learner->arena->pool, &pages))
        return UINT64_MAX;
    uint64_t from = pages.moved == learner->moved ? 0 : learner->looked;
    learner->moved = pages.moved;
    learner->looked = count;
    return from;
}

/* Where the stream stands in a loop, which is planned if it is new. */
static struct bfc_position find_position(struct learner *learner, const struct events *events,
                                         uint64_t count) {
    struct bfc_pool_stats stats;
    bfc_pool_read_stats(learner->arena->pool, &stats);
    uint64_t from = moving_from(learner, count);
    const struct loop_limits limits = {.seconds = PLANNING_SECONDS,
                                       .least_bytes = stats.peak_in_use / LEAST_SHARE,
                                       .same_sizes = from != UINT64_MAX,
                                       .interrupted = &learner->arena->ended};
    struct bfc_position position = bfc_learned_loops_recognise(&learner->learned_loops, events);
    return position.learned_loop ? position
                                 : bfc_learned_loops_learn(&learner->learned_loops, events, from,
                                                           learner->whole, &limits);
}

/* What exceeds the share is made up for later. Planning does not count, which is done a few times
 * at most: a look that learned. */
static void count_time(struct learner *learner, uint64_t start, bool learned) {
    uint64_t end = bfc_now_ns(), owed = bfc_max(learner->next_look_ns, end);
    learner->next_look_ns = learned ? end : owed + LOOKING_SHARE * (end - start);
}

static void look_for_loop(struct learner *learner, uint64_t count) {
    uint64_t start = bfc_now_ns();
    unsigned known = learner->learned_loops.count;
    struct events events;
    struct bfc_position position = {.learned_loop = NULL};
    if (bfc_stream_make(&events, learner->notes, count, (uint32_t)learner->arena->device)) {
        position = find_position(learner, &events, count);
        events_free(&events);
    }
    learner->next_look = count + count / 4 + FIRST_LOOK;
    count_time(learner, start, learner->learned_loops.count > known);
    if (position.learned_loop)
        follow_loop(learner, position, count);
}

static void attend_listening(struct learner *learner) {
    uint64_t count = bfc_pool_notes(learner->arena->pool);
    bool full = count == BFC_LEARN_NOTES;
    if ((count >= learner->next_look && bfc_now_ns() >= learner->next_look_ns) || full)
        look_for_loop(learner, count);
    if (full && learner->state == LISTENS)
        pause_for_long(learner);
}

/*
 * Once a whole period was served from the plan's memory, what served before is idle and goes back;
 * a few tries, since in other modes of free it may still be pending.
 */
static void trim_replaced(struct learner *learner) {
    if (!learner->trims || !bfc_load_relaxed(&published_plan(learner)->memory) ||
        bfc_load_relaxed(&published_plan(learner)->periods) < learner->periods + 2 ||
        !bfc_background_begin())
        return;
    learner->trims--;
    bfc_reuse_settle(learner->arena);
    uint64_t went = bfc_plan_trim_replaced(learner->arena);
    bfc_background_end();
    if (went)
        bfc_log(BFC_LOG_INFO, "device %d, context %llu: a plan has replaced %s, which went back",
                (int)learner->arena->device, learner->arena->id, BFC_BYTES(went));
}

/*
 * What lies beside the plan is to lie in one region: the others go back as they fall idle. A real
 * free may wait for work, so it is made here. Returns whether any went.
 */
static bool gather_rest(const struct learner *learner) {
    bool follows = learner->state == FOLLOWS || learner->state == HAS_FILE;
    if (!follows || !bfc_background_begin())
        return false;
    uint64_t went = bfc_pool_gather_overflow(learner->arena->pool);
    bfc_background_end();
    return went > 0;
}

/* Returns whether there is more to look up. */
static bool look_ahead(struct learner *learner) {
    uint64_t start = bfc_now_ns();
    if (start < learner->next_ahead_ns)
        return true;
    bool more = bfc_plan_look_ahead(learner->arena);
    uint64_t end = bfc_now_ns();
    learner->next_ahead_ns = end + AHEAD_SHARE * (end - start);
    return more;
}

/* Whether the plan fits no more: in one period hardly anything came as planned, or in several in a
 * row less than half of it. A loop that changes so much may be recognised again at once, and to
 * take its plan and leave it in turn costs more than what misses: so each time it takes twice as
 * long, until plans have fitted for as long. */
static bool is_bad(struct learner *learner, uint64_t good, uint64_t bad) {
    if (bad <= good)
        learner->bad_periods = 0;
    else
        learner->bad_periods += bad / 3 > good ? BAD_PERIODS : 1;
    if (bad <= good / 2 && learner->most_bad_periods > BAD_PERIODS)
        learner->most_bad_periods--;
    if (learner->bad_periods < learner->most_bad_periods)
        return false;
    learner->most_bad_periods *= 2;
    return true;
}

/* Whether so many miss for so long that it is worth to look for another plan. */
static bool is_poor(struct learner *learner, uint64_t good, uint64_t bad) {
    unsigned learned_loops = learner->learned_loops.count,
             weight = 2 * bad > good ? POOR_WEIGHT : 1;
    if (9 * bad > good)
        learner->poor_periods += weight;
    else if (learner->poor_periods > 0)
        learner->poor_periods--; /* it may have been a loop within the loop */
    return learned_loops < BFC_MOST_LEARNED_LOOPS &&
           learner->poor_periods >= POOR_WEIGHT * POOR_PERIODS << learned_loops;
}

static void attend_following(struct learner *learner) {
    uint64_t followed, missed;
    trim_replaced(learner);
    read_progress(learner, &followed, &missed);
    uint64_t good = followed - learner->followed, bad = missed - learner->missed;
    if (good + bad < learner->follows->plan.header->period)
        return;
    learner->followed = followed;
    learner->missed = missed;
    bool poor = is_poor(learner, good, bad);
    if (!is_bad(learner, good, bad) && !poor)
        return;
    learner->learned_loops.avoided = poor ? learner->follows : NULL;
    bfc_plan_leave(learner->arena);
    if (bfc_now_ns() >= learner->next_look_ns)
        take_notes(learner);
    else
        stop_listening(learner, PAUSES);
}

static bool has_paused(const struct learner *learner) {
    uint64_t now = bfc_now_ns();
    return now - learner->since_ns >= learner->pause_ns / 2 && now >= learner->next_look_ns;
}

static void attend_learner(struct learner *learner) {
    if (learner->state == LISTENS)
        attend_listening(learner);
    else if (learner->state == FOLLOWS)
        attend_following(learner);
    else if (learner->state == PAUSES && has_paused(learner))
        take_notes(learner);
}

/* ---- the thread ---- */

static void stop_for_good(struct learner *learner) {
    if (!learner->notes)
        return;
    bfc_pool_take_notes(learner->arena->pool, NULL, 0);
    munmap(learner->notes, BFC_LEARN_NOTES * sizeof *learner->notes);
    learner->notes = NULL;
}

/* Its context has ended. The plans stay while others hold the arena, with which their followers go.
 * False: not yet. */
static bool dismiss_learner(struct learner *learner) {
    stop_for_good(learner);
    if (bfc_load_acquire(&learner->arena->references) > 1)
        return false;
    bfc_arena_drop(learner->arena);
    bfc_learned_loops_forget(&learner->learned_loops);
    free(learner);
    bfc_fetch_sub_relaxed(&taught, 1);
    return true;
}

static bool is_busy(const struct learner *learner) {
    return learner->state == LISTENS || (learner->state == FOLLOWS && learner->trims);
}

/* Whether calls have come. While it pauses, nobody can tell. */
static bool has_moved(struct learner *learner) {
    uint64_t followed, missed;
    read_progress(learner, &followed, &missed);
    uint64_t notes = learner->state == LISTENS ? bfc_pool_notes(learner->arena->pool) : 0;
    bool moved = learner->seen != followed + missed + notes;
    learner->seen = followed + missed + notes;
    return moved;
}

/* What is to be done soon. */
struct need {
    bool soon;  /* some learner is to be attended to again soon, if its program goes on... */
    bool moves; /* ...which it does, or there is more to do in any case */
};

static void attend_living(struct learner *learner, struct need *need) {
    bool moved = has_moved(learner);
    attend_learner(learner);
    bool more = gather_rest(learner);
    more |= look_ahead(learner);
    need->soon |= more || is_busy(learner);
    need->moves |= more || moved;
}

/* Keeps those whose context lives. */
static struct need attend_all(struct learner **first) {
    struct need need = {.soon = false};
    for (struct learner **link = first; *link;) {
        struct learner *learner = *link;
        struct learner *next = learner->next;
        bool ended = bfc_load_acquire(&learner->arena->ended);
        if (ended && dismiss_learner(learner)) {
            *link = next;
            continue;
        }
        if (!ended)
            attend_living(learner, &need);
        link = &learner->next;
    }
    return need;
}

static struct learner *take_new_learners(struct learner *others) {
    struct learner *first = bfc_exchange_acquire(&new_learners, NULL);
    struct learner **end = &first;
    while (*end)
        end = &(*end)->next;
    *end = others;
    return first;
}

/* Until a new learner comes, or that time has passed. */
static void sleep_for(uint32_t seen, uint64_t ns) {
    struct timespec time = {.tv_sec = (time_t)(ns / BFC_NS_PER_SECOND),
                            .tv_nsec = (long)(ns % BFC_NS_PER_SECOND)};
    syscall(SYS_futex, &arrivals, FUTEX_WAIT_PRIVATE, seen, &time, NULL, 0);
}

/* Of a program that sleeps, the longer it does. */
static uint64_t nap_of(const struct need *need, uint64_t still_ns) {
    uint64_t least = need->soon ? QUICK_NAP_NS : SLOW_NAP_NS;
    return bfc_max(least, bfc_min(still_ns / NAP_SHARE, LONGEST_NAP_NS));
}

static void *run_learning(void *unused) {
    struct learner *learners = NULL;
    uint64_t moved_ns = bfc_now_ns();
    bfc_background_enter();
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICENESS); /* in Linux of one thread */
    while (!bfc_background_is_over()) {
        uint32_t seen = bfc_load_acquire(&arrivals);
        learners = take_new_learners(learners);
        struct need need = attend_all(&learners);
        uint64_t now = bfc_now_ns();
        moved_ns = need.moves ? now : moved_ns;
        sleep_for(seen, nap_of(&need, now - moved_ns));
    }
    return unused;
}

static bool start_once(void) {
    static bool started; /* atomic */
    return bfc_exchange_acq_rel(&started, true) || bfc_background_start(run_learning, NULL);
}

/* ---- beginning ---- */

static struct learner *make_file_follower(struct bfc_arena *arena) {
    struct learner *learner = calloc(1, sizeof *learner);
    if (!learner)
        return NULL;
    *learner = (struct learner){.arena = arena, .state = HAS_FILE};
    bfc_arena_keep(arena);
    return learner;
}

static struct learner *make_learner(struct bfc_arena *arena) {
    size_t bytes = BFC_LEARN_NOTES * sizeof(struct bfc_pool_note);
    struct learner *learner = calloc(1, sizeof *learner);
    void *notes = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!learner || notes == MAP_FAILED) {
        free(learner);
        return NULL;
    }
    *learner = (struct learner){.arena = arena,
                                .notes = notes,
                                .whole = true,
                                .pause_ns = SHORTEST_PAUSE_NS,
                                .most_bad_periods = BAD_PERIODS};
    bfc_arena_keep(arena);
    take_notes(learner);
    return learner;
}

/* Whether contexts come and go faster than the thread can follow: there is nothing to learn then.
 */
static bool is_behind(void) {
    unsigned living = 0;
    struct bfc_arena *arena = NULL;
    while ((arena = bfc_arena_next(arena)))
        living++;
    return bfc_load_relaxed(&taught) > living + MOST_ENDED;
}

static void wake_thread(void) {
    bfc_fetch_add_release(&arrivals, 1);
    syscall(SYS_futex, &arrivals, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void bfc_learn_begin(struct bfc_arena *arena) {
    bool automatic = bfc_plan_is_automatic();
    if (bfc_arena_is_host(arena) || !(automatic || bfc_plan_is_followed(arena)) || is_behind())
        return;
    struct learner *learner = automatic ? make_learner(arena) : make_file_follower(arena);
    if (!learner || !start_once()) {
        bfc_log(BFC_LOG_WARN,
                "BFC_PLAN: device %d: the host has no memory or thread to tend a plan",
                (int)arena->device);
        return;
    }
    bfc_fetch_add_relaxed(&taught, 1);
    learner->next = bfc_load_relaxed(&new_learners);
    while (!bfc_compare_exchange_seq_cst(&new_learners, &learner->next, learner))
        ;
    wake_thread();
}
