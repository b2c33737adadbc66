/*
 * BFC_PLAN=auto: finds the loops that the program runs, plans them in a thread of the library (the
 * learning thread), and has the plans followed. Each pool has a learner. The thread that creates a
 * pool hands the learner over to the learning thread, and from then on only that thread changes it.
 *
 * A pool notes its calls (bfc_pool_take_notes) as long as no loop was found, and again when a plan
 * no longer fits. The learning thread, which has a low priority, searches the notes now and then.
 * If it recognises a loop that it has planned, that plan is followed again; if the last allocations
 * repeat three times, they are planned and the plan is followed. The program's calls only take
 * notes. Bounds: after notes of MOST_NOTES calls there is a pause; a pool has at most
 * BFC_MOST_LEARNED_LOOPS plans; planning takes a few seconds a plan, and searching a small fraction
 * of one processor.
 *
 * Nothing is learned in a forked child or once the process exits. Learning for a pool ends with its
 * context, even while a plan is being made.
 */
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
#include "planner/period/event_stream.h"
#include "pool/pages.h"

#define MOST_NOTES ((uint64_t)1 << 20)
#define FIRST_LOOK 24 /* noted calls of a pool before the first search for a loop */
#define PLANNING_SECONDS 2.0
/* a loop is planned if at some time it uses at least 1/LEAST_SHARE of the pool's peak in use */
#define LEAST_SHARE 8
/* searching for loops takes at most 1/LOOKING_SHARE of a processor's time */
#define LOOKING_SHARE 32
/* looking up which ranges between the blocks of plans are free (gaps.h) takes at most 1/AHEAD_SHARE
 * of a processor's time */
#define AHEAD_SHARE 8
#define QUICK_NAP_NS 2000000
#define SLOW_NAP_NS 50000000
#define LONGEST_NAP_NS BFC_NS_PER_SECOND
/* the learning thread sleeps for 1/NAP_SHARE of the time since the program's last call, within the
 * bounds above */
#define NAP_SHARE 8
/* learning begins for no new context while the learning thread has more than this many ended ones
 * to clean up */
#define MOST_ENDED 8
#define SHORTEST_PAUSE_NS (BFC_NS_PER_SECOND / 2)
#define LONGEST_PAUSE_NS (60 * BFC_NS_PER_SECOND)
#define TRIMS 4
#define BAD_PERIODS 4
/* after this many repetitions in which over a third of the allocations got no planned place, the
 * library looks for another loop; the number doubles with each loop that is learned */
#define POOR_PERIODS 32u
/* a repetition of the loop in which over a third of the allocations got no planned place adds this
 * much to `poor_periods`; one in which over a tenth got none adds 1 */
#define POOR_WEIGHT 4
/* nice value of the learning thread; with 19, the lowest priority, it would not run on a busy
 * machine */
#define NICENESS 10
/* a pause that begins because MOST_NOTES calls were noted lasts at least this many times as long as
 * noting them took */
#define PAUSE_TIMES 4

enum learner_state { LISTENS, PAUSES, FOLLOWS, HAS_FILE };

/* What the learning thread knows of one arena's calls. A learner holds a reference to its arena. */
struct learner {
    struct bfc_arena *arena;
    struct bfc_pool_note *notes; /* the pool's noted calls; NULL with BFC_PLAN=FILE */
    enum learner_state state;
    bool whole; /* whether `notes` has every call since the arena's context began */
    /* the next search for a loop takes place when this many calls are noted */
    uint64_t next_look;
    uint64_t next_look_ns;  /* earliest time of the next search for a loop */
    uint64_t next_ahead_ns; /* earliest time to look up free ranges of the plan (gaps.h) */
    uint64_t since_ns;      /* when `state` last changed */
    /* least length of the next pause; doubled as a pause begins, which then lasts half of it */
    uint64_t pause_ns;
    /* as of the last search for a loop: how many calls were noted, and how many bytes of pages the
     * pool had moved */
    uint64_t looked, moved;
    /* how often the learning thread still tries to give back memory that the plan replaces */
    uint64_t trims;
    uint64_t periods; /* the segment's counter `periods` when the plan began */
    /* the segment's counters `followed` and `missed` when the plan's fit was last judged */
    uint64_t followed, missed;
    uint64_t seen; /* sum of followed, missed and noted calls at the last visit */
    /* how many repetitions of the loop in a row gave most allocations no planned place; one in
     * which over three quarters got none counts as BAD_PERIODS */
    unsigned bad_periods;
    unsigned most_bad_periods; /* the value of bad_periods at which the plan is dropped */
    /* how many repetitions gave over a tenth of the allocations no planned place, less those that
     * did not; one in which over a third got none counts as POOR_WEIGHT */
    unsigned poor_periods;
    const struct bfc_learned_loop *follows;
    struct bfc_learned_loops learned_loops;
    struct learner *next;
};

/* atomic: list of the learners of new pools, until the learning thread takes them over */
static struct learner *new_learners;
/* atomic: how many learners were added so far; a futex on which the learning thread sleeps */
static uint32_t arrivals;
static unsigned taught; /* atomic: how many objects of struct learner exist */

static void take_notes(struct learner *learner) {
    madvise(learner->notes, MOST_NOTES * sizeof *learner->notes, MADV_DONTNEED);
    bfc_pool_take_notes(learner->arena->pool, learner->notes, MOST_NOTES);
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

/* Stops noting the pool's calls for a while because MOST_NOTES calls have shown no loop; each pause
 * is longer than the last. */
static void pause_for_long(struct learner *learner) {
    uint64_t took = bfc_now_ns() - learner->since_ns;
    uint64_t pause = bfc_max(took * PAUSE_TIMES, learner->pause_ns);
    stop_listening(learner, PAUSES);
    learner->pause_ns = 2 * bfc_min(pause, LONGEST_PAUSE_NS / 2);
}

/* Returns which event of the loop's plan the program's next allocation should be. `position` was
 * found from the first `looked` calls that the pool noted; the allocations noted since are added to
 * it. */
static uint32_t position_now(const struct learner *learner, struct bfc_position position,
                             uint64_t looked) {
    uint64_t passed = 0, now = bfc_pool_notes(learner->arena->pool);
    for (uint64_t i = looked; i < now; i++)
        passed += learner->notes[i].bytes != 0;
    uint32_t period = position.learned_loop->plan.header->period;
    return position.learned_loop->plan.header->prefix +
           (uint32_t)((position.event + passed) % period);
}

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

static void add_free(struct events *events, uint64_t id) {
    uint32_t allocation = events_find(events, id);
    if (allocation != NEVER)
        events_add_free(events, allocation);
}

/* Threads are numbered from 1 on as they occur in the noted calls; those beyond MOST_THREADS share
 * a number. */
enum { MOST_THREADS = 64 };

struct threads {
    uint64_t marks[MOST_THREADS];
    uint32_t count;
};

static uint32_t number_of(struct threads *threads, uint64_t mark) {
    uint32_t i = 0;
    while (i < threads->count && threads->marks[i] != mark)
        i++;
    if (i == threads->count && i < MOST_THREADS)
        threads->marks[threads->count++] = mark;
    return i + 1;
}

static void add_note(struct events *events, const struct bfc_pool_note *note, uint32_t device,
                     struct threads *threads) {
    if (note->bytes)
        events_add_allocation(events,
                              (struct allocation){.bytes = bfc_plan_round(note->bytes),
                                                  .serial = note->id,
                                                  .thread = number_of(threads, note->thread),
                                                  .device = device});
    else
        add_free(events, note->id);
}

/* Converts a pool's noted calls into the sequence of events that the planner reads, without frees
 * of unknown blocks. Free it with events_free. False: no host memory. O(count log count). */
static bool make_stream(struct events *events, const struct bfc_pool_note *notes, uint64_t count,
                        uint32_t device) {
    struct threads threads = {.count = 0};
    uint64_t allocations = 0;
    for (uint64_t i = 0; i < count; i++)
        allocations += notes[i].bytes != 0;
    *events = (struct events){
        .list = malloc((count + 1) * sizeof *events->list),
        .allocations = malloc((allocations + 1) * sizeof *events->allocations),
    };
    if (!events->list || !events->allocations) {
        events_free(events);
        return false;
    }
    for (uint64_t i = 0; i < count; i++)
        add_note(events, &notes[i], device, &threads);
    return true;
}

/*
 * Returns the number of noted calls within which a loop's first repetition must have ended for the
 * loop to be planned; UINT64_MAX: any loop may be planned. In a pool with pages a plan pays off
 * only while pages keep moving. While none move, the pool holds little more than what is in use,
 * and the memory reserved for a plan may be more. So for a pool with pages the result is the number
 * of calls noted at the last search if pages have moved since, else 0, so that no loop is planned.
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

/* Finds the loop that the program runs and the event that comes next in it. A loop that is not
 * known yet is planned. */
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

/* Sets when the thread may search for a loop again, so that searching takes only its share of a
 * processor. A search that planned a loop does not count, since that happens a few times at
 * most. */
static void count_time(struct learner *learner, uint64_t start, bool learned) {
    uint64_t end = bfc_now_ns(), owed = bfc_max(learner->next_look_ns, end);
    learner->next_look_ns = learned ? end : owed + LOOKING_SHARE * (end - start);
}

static void look_for_loop(struct learner *learner, uint64_t count) {
    uint64_t start = bfc_now_ns();
    unsigned known = learner->learned_loops.count;
    struct events events;
    struct bfc_position position = {.learned_loop = NULL};
    if (make_stream(&events, learner->notes, count, (uint32_t)learner->arena->device)) {
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
    bool full = count == MOST_NOTES;
    if ((count >= learner->next_look && bfc_now_ns() >= learner->next_look_ns) || full)
        look_for_loop(learner, count);
    if (full && learner->state == LISTENS)
        pause_for_long(learner);
}

/* Gives back the regions that the pool used before it followed the plan, once a whole repetition of
 * the loop was served from the plan's memory. This is tried at several visits, since blocks may
 * still be pending. */
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

/* Has the pool give back idle regions outside the plan, so that later blocks outside the plan share
 * one region. The learning thread does so, not the program's, because the driver's free may wait
 * for work. Returns whether any memory was given back. */
static bool gather_rest(const struct learner *learner) {
    bool follows = learner->state == FOLLOWS || learner->state == HAS_FILE;
    if (!follows || !bfc_background_begin())
        return false;
    uint64_t went = bfc_pool_gather_overflow(learner->arena->pool);
    bfc_background_end();
    return went > 0;
}

static bool look_ahead(struct learner *learner) {
    uint64_t start = bfc_now_ns();
    if (start < learner->next_ahead_ns)
        return true;
    bool more = bfc_plan_look_ahead(learner->arena);
    uint64_t end = bfc_now_ns();
    learner->next_ahead_ns = end + AHEAD_SHARE * (end - start);
    return more;
}

/*
 * Whether the plan no longer fits, which is when `bad_periods` reaches `most_bad_periods`. A
 * repetition of the loop in which less than half of the allocations got their planned places adds 1
 * to `bad_periods`, one with less than a quarter adds BAD_PERIODS, and any other sets it to 0. To
 * change between plans often costs more than allocations without a place. So `most_bad_periods`
 * doubles each time that a plan is dropped, and falls again while plans fit.
 */
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

/* Whether so many allocations have missed their planned places, and for so long, that looking for
 * another plan is worth its time. */
static bool is_poor(struct learner *learner, uint64_t good, uint64_t bad) {
    unsigned learned_loops = learner->learned_loops.count,
             weight = 2 * bad > good ? POOR_WEIGHT : 1;
    if (9 * bad > good)
        learner->poor_periods += weight;
    else if (learner->poor_periods > 0)
        /* an inner loop of the program may make single repetitions poor, so each good one cancels
         * one */
        learner->poor_periods--;
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

static void attend_learner(struct learner *learner) {
    uint64_t now = bfc_now_ns();
    if (learner->state == LISTENS)
        attend_listening(learner);
    else if (learner->state == FOLLOWS)
        attend_following(learner);
    else if (learner->state == PAUSES && now >= learner->next_look_ns &&
             now - learner->since_ns >= learner->pause_ns / 2)
        take_notes(learner);
}

static void stop_for_good(struct learner *learner) {
    if (!learner->notes)
        return;
    bfc_pool_take_notes(learner->arena->pool, NULL, 0);
    munmap(learner->notes, MOST_NOTES * sizeof *learner->notes);
    learner->notes = NULL;
}

/* Frees a learner whose context has ended. False: the learner is kept for now, since there are
 * other references to its arena, which may still follow the learner's plans. */
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

/* Whether the program has called the learner's pool since the learning thread last looked at this
 * learner. Calls are not counted while the learner pauses. */
static bool has_moved(struct learner *learner) {
    uint64_t followed, missed;
    read_progress(learner, &followed, &missed);
    uint64_t notes = learner->state == LISTENS ? bfc_pool_notes(learner->arena->pool) : 0;
    bool moved = learner->seen != followed + missed + notes;
    learner->seen = followed + missed + notes;
    return moved;
}

/* What the learning thread has found on a visit to all learners: sets how long it then sleeps. */
struct need {
    bool soon;  /* whether to visit again soon, unless the program's last call is long ago */
    bool moves; /* whether the program made calls since the last visit, or work is left to do */
};

static void attend_living(struct learner *learner, struct need *need) {
    bool moved = has_moved(learner);
    attend_learner(learner);
    bool more = gather_rest(learner);
    more |= look_ahead(learner);
    need->soon |= more || is_busy(learner);
    need->moves |= more || moved;
}

/* Visits every learner, and frees those whose context has ended. */
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

/* Sleeps until a new learner is added or the time has passed. */
static void sleep_for(uint32_t seen, uint64_t ns) {
    struct timespec time = bfc_timespec(ns);
    syscall(SYS_futex, &arrivals, FUTEX_WAIT_PRIVATE, seen, &time, NULL, 0);
}

/* Returns for how many nanoseconds the thread sleeps: the longer, the longer ago (`still_ns`) the
 * program's last call is. */
static uint64_t nap_of(const struct need *need, uint64_t still_ns) {
    uint64_t least = need->soon ? QUICK_NAP_NS : SLOW_NAP_NS;
    return bfc_max(least, bfc_min(still_ns / NAP_SHARE, LONGEST_NAP_NS));
}

static void *run_learning(void *unused) {
    struct learner *learners = NULL;
    uint64_t moved_ns = bfc_now_ns();
    bfc_background_enter();
    /* in Linux, unlike POSIX, this sets the priority of the calling thread alone */
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICENESS);
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
    static bool started; /* atomic: whether the thread was started */
    return bfc_exchange_acq_rel(&started, true) || bfc_background_start(run_learning, NULL);
}

static struct learner *make_learner(struct bfc_arena *arena, bool automatic) {
    size_t bytes = MOST_NOTES * sizeof(struct bfc_pool_note);
    struct learner *learner = calloc(1, sizeof *learner);
    void *notes = automatic && learner ? mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                                       : NULL;
    if (!learner || notes == MAP_FAILED) {
        free(learner);
        return NULL;
    }
    *learner = (struct learner){.arena = arena,
                                .notes = notes,
                                .state = HAS_FILE,
                                .whole = true,
                                .pause_ns = SHORTEST_PAUSE_NS,
                                .most_bad_periods = BAD_PERIODS};
    bfc_arena_keep(arena);
    if (automatic)
        take_notes(learner);
    return learner;
}

/* Whether the learning thread still has so many learners of ended contexts to free that contexts
 * seem to come and go too fast for anything to be learned. */
static bool is_behind(void) {
    unsigned living = 0;
    struct bfc_arena *arena = NULL;
    while ((arena = bfc_arena_next(arena)))
        living++;
    return bfc_load_relaxed(&taught) > living + MOST_ENDED;
}

void bfc_learn_begin(struct bfc_arena *arena) {
    bool automatic = bfc_plan_is_automatic();
    if (bfc_arena_is_host(arena) || !(automatic || bfc_plan_is_followed(arena)) || is_behind())
        return;
    struct learner *learner = make_learner(arena, automatic);
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
    bfc_fetch_add_release(&arrivals, 1);
    syscall(SYS_futex, &arrivals, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
