/* The thread that learns. It alone touches the pupils, once they are in the list. */
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
#include "interpose/features/plan/learn/lessons.h"
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
#define POOR_PERIODS 32u /* doubled by each lesson */
#define POOR_WEIGHT 4    /* of one in which a third misses; 1: of one in which a tenth does */
#define NICENESS 10      /* with 19 a busy machine would never get to it */
#define PAUSE_TIMES 4    /* as long as the notes took */

enum pupil_state { LISTENS, PAUSES, FOLLOWS, HAS_FILE };

/* One arena, with a reference. */
struct pupil {
    struct bfc_arena *arena;
    struct bfc_pool_note *notes; /* mapped, BFC_LEARN_NOTES; NULL: it follows BFC_PLAN=FILE */
    enum pupil_state state;
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
    unsigned patience;         /* ...at so many a plan is left */
    unsigned poor_periods;     /* by their weights, less those that were not */
    const struct bfc_lesson *follows;
    struct bfc_lessons lessons;
    struct pupil *next;
};

static struct pupil *newcomers; /* atomic: a list that the thread takes over */
static uint32_t arrivals;       /* atomic: newcomers ever; the thread sleeps on it */
static unsigned taught;         /* atomic: pupils that are not dismissed yet */

/* ---- taking notes ---- */

static void listen(struct pupil *pupil) {
    madvise(pupil->notes, BFC_LEARN_NOTES * sizeof *pupil->notes, MADV_DONTNEED);
    bfc_pool_take_notes(pupil->arena->pool, pupil->notes, BFC_LEARN_NOTES);
    pupil->state = LISTENS;
    pupil->next_look = FIRST_LOOK;
    pupil->looked = 0;
    pupil->since_ns = bfc_now_ns();
}

static void stop_listening(struct pupil *pupil, enum pupil_state state) {
    bfc_pool_take_notes(pupil->arena->pool, NULL, 0);
    pupil->whole = false;
    pupil->state = state;
    pupil->since_ns = bfc_now_ns();
}

/* Nothing repeats in all that could be noted. */
static void pause_for_long(struct pupil *pupil) {
    uint64_t took = bfc_now_ns() - pupil->since_ns;
    uint64_t pause = took * PAUSE_TIMES > pupil->pause_ns ? took * PAUSE_TIMES : pupil->pause_ns;
    stop_listening(pupil, PAUSES);
    pupil->pause_ns = pause < LONGEST_PAUSE_NS / 2 ? pause : LONGEST_PAUSE_NS / 2;
    pupil->pause_ns *= 2;
}

/* ---- following ---- */

/* The notes that have come since the look tell how far the program has gone on meanwhile. */
static uint32_t position_now(const struct pupil *pupil, struct bfc_position position,
                             uint64_t looked) {
    uint64_t passed = 0, now = bfc_pool_notes(pupil->arena->pool);
    for (uint64_t i = looked; i < now; i++)
        passed += pupil->notes[i].bytes != 0;
    uint32_t period = position.lesson->plan.header->period;
    return position.lesson->plan.header->prefix + (uint32_t)((position.event + passed) % period);
}

/* What the follower tells. */
static const struct bfc_segment_plan *told(const struct pupil *pupil) {
    return &pupil->arena->stats.section->plan;
}

static void read_progress(const struct pupil *pupil, uint64_t *followed, uint64_t *missed) {
    *followed =
        bfc_load_relaxed(&told(pupil)->followed) + bfc_load_relaxed(&told(pupil)->unplanned);
    *missed = bfc_load_relaxed(&told(pupil)->missed);
}

static void follow(struct pupil *pupil, struct bfc_position position, uint64_t looked) {
    if (!bfc_background_begin())
        return;
    bool follows = bfc_plan_follow(pupil->arena, &position.lesson->plan,
                                   position_now(pupil, position, looked));
    bfc_background_end();
    if (!follows)
        return;
    pupil->follows = position.lesson;
    pupil->pause_ns = SHORTEST_PAUSE_NS;
    pupil->trims = TRIMS;
    pupil->lessons.avoided = NULL;
    pupil->bad_periods = pupil->poor_periods = 0;
    pupil->periods = bfc_load_relaxed(&told(pupil)->periods);
    read_progress(pupil, &pupil->followed, &pupil->missed);
    stop_listening(pupil, FOLLOWS);
}

/* ---- looking ---- */

/*
 * With pages a plan is for what keeps pages on the move. Where they are at rest, or sizes vary, the
 * pool holds little more than what lives; a plan sets memory apart, and that may be more. Returns
 * from which note on they were seen to move; UINT64_MAX: there are none, so any loop is planned; 0:
 * they rest, so none is.
 */
static uint64_t moving_from(struct pupil *pupil, uint64_t count) {
    struct bfc_page_stats pages;
    if (!bfc_pool_page_stats(pupil->arena->pool, &pages))
        return UINT64_MAX;
    uint64_t from = pages.moved == pupil->moved ? 0 : pupil->looked;
    pupil->moved = pages.moved;
    pupil->looked = count;
    return from;
}

/* Where the stream stands in a loop, which is planned if it is new. */
static struct bfc_position find_position(struct pupil *pupil, const struct events *events,
                                         uint64_t count) {
    struct bfc_pool_stats stats;
    bfc_pool_read_stats(pupil->arena->pool, &stats);
    uint64_t from = moving_from(pupil, count);
    const struct loop_limits limits = {.seconds = PLANNING_SECONDS,
                                       .least_bytes = stats.peak_in_use / LEAST_SHARE,
                                       .same_sizes = from != UINT64_MAX,
                                       .interrupted = &pupil->arena->ended};
    struct bfc_position position = bfc_lessons_recognise(&pupil->lessons, events);
    return position.lesson
               ? position
               : bfc_lessons_learn(&pupil->lessons, events, from, pupil->whole, &limits);
}

/* What exceeds the share is made up for later. Planning does not count, which is done a few times
 * at most: a look that learned. */
static void count_time(struct pupil *pupil, uint64_t start, bool learned) {
    uint64_t end = bfc_now_ns(), owed = bfc_max(pupil->next_look_ns, end);
    pupil->next_look_ns = learned ? end : owed + LOOKING_SHARE * (end - start);
}

static void look(struct pupil *pupil, uint64_t count) {
    uint64_t start = bfc_now_ns();
    unsigned known = pupil->lessons.count;
    struct events events;
    struct bfc_position position = {.lesson = NULL};
    if (bfc_stream_make(&events, pupil->notes, count, (uint32_t)pupil->arena->device)) {
        position = find_position(pupil, &events, count);
        events_free(&events);
    }
    pupil->next_look = count + count / 4 + FIRST_LOOK;
    count_time(pupil, start, pupil->lessons.count > known);
    if (position.lesson)
        follow(pupil, position, count);
}

static void attend_listening(struct pupil *pupil) {
    uint64_t count = bfc_pool_notes(pupil->arena->pool);
    bool full = count == BFC_LEARN_NOTES;
    if ((count >= pupil->next_look && bfc_now_ns() >= pupil->next_look_ns) || full)
        look(pupil, count);
    if (full && pupil->state == LISTENS)
        pause_for_long(pupil);
}

/*
 * Once a whole period was served from the plan's memory, what served before is idle and goes back;
 * a few tries, since in other modes of free it may still be pending.
 */
static void trim_replaced(struct pupil *pupil) {
    if (!pupil->trims || !bfc_load_relaxed(&told(pupil)->memory) ||
        bfc_load_relaxed(&told(pupil)->periods) < pupil->periods + 2 || !bfc_background_begin())
        return;
    pupil->trims--;
    bfc_reuse_settle(pupil->arena);
    uint64_t went = bfc_plan_trim_replaced(pupil->arena);
    bfc_background_end();
    if (went)
        bfc_log(BFC_LOG_INFO, "device %d, context %llu: a plan has replaced %s, which went back",
                (int)pupil->arena->device, pupil->arena->id, BFC_BYTES(went));
}

/*
 * What lies beside the plan is to lie in one region: the others go back as they fall idle. A real
 * free may wait for work, so it is made here. Returns whether any went.
 */
static bool gather(const struct pupil *pupil) {
    bool follows = pupil->state == FOLLOWS || pupil->state == HAS_FILE;
    if (!follows || !bfc_background_begin())
        return false;
    uint64_t went = bfc_pool_gather_beside(pupil->arena->pool);
    bfc_background_end();
    return went > 0;
}

/* Returns whether there is more to look up. */
static bool look_ahead(struct pupil *pupil) {
    uint64_t start = bfc_now_ns();
    if (start < pupil->next_ahead_ns)
        return true;
    bool more = bfc_plan_look_ahead(pupil->arena);
    uint64_t end = bfc_now_ns();
    pupil->next_ahead_ns = end + AHEAD_SHARE * (end - start);
    return more;
}

/* Whether the plan fits no more: in one period hardly anything came as planned, or in several in a
 * row less than half of it. A loop that changes so much may be recognised again at once, and to
 * take its plan and leave it in turn costs more than what misses: so each time it takes twice as
 * long, until plans have fitted for as long. */
static bool is_bad(struct pupil *pupil, uint64_t good, uint64_t bad) {
    if (bad <= good)
        pupil->bad_periods = 0;
    else
        pupil->bad_periods += bad / 3 > good ? BAD_PERIODS : 1;
    if (bad <= good / 2 && pupil->patience > BAD_PERIODS)
        pupil->patience--;
    if (pupil->bad_periods < pupil->patience)
        return false;
    pupil->patience *= 2;
    return true;
}

/* Whether so many miss for so long that it is worth to look for another plan. */
static bool is_poor(struct pupil *pupil, uint64_t good, uint64_t bad) {
    unsigned lessons = pupil->lessons.count, weight = 2 * bad > good ? POOR_WEIGHT : 1;
    if (9 * bad > good)
        pupil->poor_periods += weight;
    else if (pupil->poor_periods > 0)
        pupil->poor_periods--; /* it may have been a loop within the loop */
    return lessons < BFC_MOST_LESSONS && pupil->poor_periods >= POOR_WEIGHT * POOR_PERIODS
                                                                    << lessons;
}

static void attend_following(struct pupil *pupil) {
    uint64_t followed, missed;
    trim_replaced(pupil);
    read_progress(pupil, &followed, &missed);
    uint64_t good = followed - pupil->followed, bad = missed - pupil->missed;
    if (good + bad < pupil->follows->plan.header->period)
        return;
    pupil->followed = followed;
    pupil->missed = missed;
    bool poor = is_poor(pupil, good, bad);
    if (!is_bad(pupil, good, bad) && !poor)
        return;
    pupil->lessons.avoided = poor ? pupil->follows : NULL;
    bfc_plan_leave(pupil->arena);
    if (bfc_now_ns() >= pupil->next_look_ns)
        listen(pupil);
    else
        stop_listening(pupil, PAUSES);
}

static bool has_paused(const struct pupil *pupil) {
    uint64_t now = bfc_now_ns();
    return now - pupil->since_ns >= pupil->pause_ns / 2 && now >= pupil->next_look_ns;
}

static void attend(struct pupil *pupil) {
    if (pupil->state == LISTENS)
        attend_listening(pupil);
    else if (pupil->state == FOLLOWS)
        attend_following(pupil);
    else if (pupil->state == PAUSES && has_paused(pupil))
        listen(pupil);
}

/* ---- the thread ---- */

static void stop_for_good(struct pupil *pupil) {
    if (!pupil->notes)
        return;
    bfc_pool_take_notes(pupil->arena->pool, NULL, 0);
    munmap(pupil->notes, BFC_LEARN_NOTES * sizeof *pupil->notes);
    pupil->notes = NULL;
}

/* Its context has ended. The plans stay while others hold the arena, with which their followers go.
 * False: not yet. */
static bool dismiss(struct pupil *pupil) {
    stop_for_good(pupil);
    if (bfc_load_acquire(&pupil->arena->references) > 1)
        return false;
    bfc_arena_drop(pupil->arena);
    bfc_lessons_forget(&pupil->lessons);
    free(pupil);
    bfc_fetch_sub_relaxed(&taught, 1);
    return true;
}

static bool is_busy(const struct pupil *pupil) {
    return pupil->state == LISTENS || (pupil->state == FOLLOWS && pupil->trims);
}

/* Whether calls have come. While it pauses, nobody can tell. */
static bool has_moved(struct pupil *pupil) {
    uint64_t followed, missed;
    read_progress(pupil, &followed, &missed);
    uint64_t notes = pupil->state == LISTENS ? bfc_pool_notes(pupil->arena->pool) : 0;
    bool moved = pupil->seen != followed + missed + notes;
    pupil->seen = followed + missed + notes;
    return moved;
}

/* What is to be done soon. */
struct need {
    bool soon;  /* some pupil is to be attended to again soon, if its program goes on... */
    bool moves; /* ...which it does, or there is more to do in any case */
};

static void attend_living(struct pupil *pupil, struct need *need) {
    bool moved = has_moved(pupil);
    attend(pupil);
    bool more = gather(pupil);
    more |= look_ahead(pupil);
    need->soon |= more || is_busy(pupil);
    need->moves |= more || moved;
}

/* Keeps those whose context lives. */
static struct need attend_all(struct pupil **first) {
    struct need need = {.soon = false};
    for (struct pupil **link = first; *link;) {
        struct pupil *pupil = *link;
        struct pupil *next = pupil->next;
        bool ended = bfc_load_acquire(&pupil->arena->ended);
        if (ended && dismiss(pupil)) {
            *link = next;
            continue;
        }
        if (!ended)
            attend_living(pupil, &need);
        link = &pupil->next;
    }
    return need;
}

static struct pupil *take_newcomers(struct pupil *others) {
    struct pupil *first = bfc_exchange_acquire(&newcomers, NULL);
    struct pupil **end = &first;
    while (*end)
        end = &(*end)->next;
    *end = others;
    return first;
}

/* Until a newcomer comes, or that time has passed. */
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
    struct pupil *pupils = NULL;
    uint64_t moved_ns = bfc_now_ns();
    bfc_background_enter();
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICENESS); /* in Linux of one thread */
    while (!bfc_background_is_over()) {
        uint32_t seen = bfc_load_acquire(&arrivals);
        pupils = take_newcomers(pupils);
        struct need need = attend_all(&pupils);
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

static struct pupil *make_keeper(struct bfc_arena *arena) {
    struct pupil *pupil = calloc(1, sizeof *pupil);
    if (!pupil)
        return NULL;
    *pupil = (struct pupil){.arena = arena, .state = HAS_FILE};
    bfc_arena_keep(arena);
    return pupil;
}

static struct pupil *make_pupil(struct bfc_arena *arena) {
    size_t bytes = BFC_LEARN_NOTES * sizeof(struct bfc_pool_note);
    struct pupil *pupil = calloc(1, sizeof *pupil);
    void *notes = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!pupil || notes == MAP_FAILED) {
        free(pupil);
        return NULL;
    }
    *pupil = (struct pupil){.arena = arena,
                            .notes = notes,
                            .whole = true,
                            .pause_ns = SHORTEST_PAUSE_NS,
                            .patience = BAD_PERIODS};
    bfc_arena_keep(arena);
    listen(pupil);
    return pupil;
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

static void wake(void) {
    bfc_fetch_add_release(&arrivals, 1);
    syscall(SYS_futex, &arrivals, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void bfc_learn_begin(struct bfc_arena *arena) {
    bool automatic = bfc_plan_is_automatic();
    if (bfc_arena_is_host(arena) || !(automatic || bfc_plan_is_followed(arena)) || is_behind())
        return;
    struct pupil *pupil = automatic ? make_pupil(arena) : make_keeper(arena);
    if (!pupil || !start_once()) {
        bfc_log(BFC_LOG_WARN,
                "BFC_PLAN: device %d: the host has no memory or thread to tend a plan",
                (int)arena->device);
        return;
    }
    bfc_fetch_add_relaxed(&taught, 1);
    pupil->next = bfc_load_relaxed(&newcomers);
    while (!bfc_compare_exchange_seq_cst(&newcomers, &pupil->next, pupil))
        ;
    wake();
}
