#include "tools/plan/pack/solve.h"

#include <stdlib.h>
#include <time.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "tools/plan/pack/worker.h"

#define ENOUGH_SECONDS 2.5  /* without a given time, when there is nothing to reach */
#define CAPACITY_SECONDS 60 /* without a given time, for a capacity that is not reached */
#define GRACE_SECONDS 1.0   /* what is still spent once a capacity is reached */
#define LOOK_NANOSECONDS 20000000
#define MOST_BOXES_AT_ONCE 16000000 /* threads × boxes: bounds the memory of the workspaces */

struct team {
    const struct problem *problem;
    const struct solve_options *options;
    struct arena_state *arenas;
    pthread_mutex_t lock;
    pthread_cond_t idle; /* the last worker has ended */
    bool stop;           /* atomic */
    double started;
    unsigned working;
    bool no_memory;
    /* The next job of the first round: an order of a part, or of the arena's filling (part =
     * count). */
    uint32_t order, arena, part;
    uint32_t turns; /* improvements handed out */
};

struct member {
    struct team *team;
    struct worker worker;
    pthread_t thread;
};

struct job {
    enum { JOB_NONE, JOB_GREEDY, JOB_IMPROVE, JOB_FILL } kind;
    struct arena_state *arena;
    struct part_state *part;
    uint32_t order;
    uint64_t goal;
    bool stepwise;
};

static uint64_t sum_peaks(struct team *team) {
    uint64_t sum = 0;
    for (uint32_t a = 0; a < team->problem->count; a++) {
        arena_state_update(&team->arenas[a]);
        if (__builtin_add_overflow(sum, team->arenas[a].peak, &sum))
            return UINT64_MAX;
    }
    return sum;
}

static bool all_optimal(struct team *team) {
    for (uint32_t a = 0; a < team->problem->count; a++)
        if (!arena_state_optimal(&team->arenas[a]))
            return false;
    return true;
}

/* The peak within the part above which it is worth while to go on. */
static uint64_t goal_of(const struct team *team, const struct arena_state *arena,
                        const struct part_state *part) {
    const uint64_t base = part->part->base;
    uint64_t whole = arena->arena->bound;
    if (team->problem->count == 1 && team->options->capacity != UINT64_MAX &&
        team->options->capacity > whole && team->options->capacity < arena->peak)
        whole = team->options->capacity;
    const uint64_t goal = whole > base ? whole - base : 0;
    return goal > part->proved ? goal : part->proved;
}

static bool needs_greedy(const struct arena_state *arena, const struct part_state *part) {
    return part->best > part->proved &&
           (part->best == UINT64_MAX || part->part->base + part->best > arena->arena->bound);
}

static void advance(struct team *team) {
    const struct arena_state *arena = &team->arenas[team->arena];
    if (++team->part <= arena->parts.count)
        return;
    team->part = 0;
    if (++team->arena < team->problem->count)
        return;
    team->arena = 0;
    team->order++;
}

/* The first round goes order by order, so that a plan of all parts exists early. */
static struct job next_greedy(struct team *team) {
    while (team->order < FIXED_ORDERS) {
        struct arena_state *arena = &team->arenas[team->arena];
        const uint32_t order = team->order;
        const uint32_t part = team->part;
        advance(team);
        if (part < arena->parts.count && needs_greedy(arena, &arena->states[part]))
            return (struct job){JOB_GREEDY, arena, &arena->states[part], order, 0, false};
        const bool first = order == 0 || arena->filled_peak > arena->arena->bound;
        if (part == arena->parts.count && arena->whole && arena->arena->count > 0 && first)
            return (struct job){JOB_FILL, arena, NULL, order, 0, false};
    }
    return (struct job){.kind = JOB_NONE};
}

/* Arenas take turns; within one the highest part is improved, or all of it filled anew. */
static struct job next_improvement(struct team *team) {
    for (uint32_t tried = 0; tried < team->problem->count; tried++) {
        struct arena_state *arena = &team->arenas[team->turns++ % team->problem->count];
        arena_state_update(arena);
        if (arena_state_optimal(arena))
            continue;
        struct part_state *part = arena_state_worst(arena);
        if (arena->whole && (!part || team->turns % 2 == 0))
            return (struct job){JOB_FILL, arena, NULL, 0, 0, false};
        if (part)
            return (struct job){JOB_IMPROVE,
                                arena,
                                part,
                                0,
                                goal_of(team, arena, part),
                                team->options->capacity == UINT64_MAX};
    }
    return (struct job){.kind = JOB_NONE};
}

static struct job next_job(struct team *team) {
    struct job job = {.kind = JOB_NONE};
    pthread_mutex_lock(&team->lock);
    const bool stop = bfc_load_relaxed(&team->stop); /* set under it */
    if (!stop || team->order == 0)
        job = next_greedy(team);
    if (job.kind != JOB_NONE && stop && job.order > 0)
        job.kind = JOB_NONE;
    else if (job.kind == JOB_NONE && !stop)
        job = next_improvement(team);
    pthread_mutex_unlock(&team->lock);
    return job;
}

static void do_job(struct worker *worker, const struct job *job) {
    if (job->kind == JOB_GREEDY)
        worker_greedy(worker, job->arena, job->part, job->order);
    else if (job->kind == JOB_IMPROVE)
        worker_improve(worker, job->arena, job->part, job->goal, job->stepwise);
    else
        worker_fill(worker, job->arena);
}

static void *work(void *argument) {
    struct member *member = argument;
    struct team *team = member->team;
    for (;;) {
        const struct job job = next_job(team);
        if (job.kind == JOB_NONE || member->worker.no_memory)
            break;
        do_job(&member->worker, &job);
    }
    pthread_mutex_lock(&team->lock);
    team->no_memory = team->no_memory || member->worker.no_memory;
    if (--team->working == 0)
        pthread_cond_signal(&team->idle);
    pthread_mutex_unlock(&team->lock);
    return NULL;
}

/* With the lock held: whether the time is over or the best plan is good enough. */
static bool enough(struct team *team, double seconds) {
    const struct solve_options *options = team->options;
    if (bfc_load_seq_cst(options->interrupted) ||
        (options->seconds >= 0 && seconds >= options->seconds))
        return true;
    const uint64_t peak = sum_peaks(team);
    const bool given = options->capacity != UINT64_MAX;
    const bool reached = peak <= options->capacity;
    if (given && reached)
        return seconds >= GRACE_SECONDS;
    if (options->seconds >= 0)
        return false;
    if (given)
        return seconds >= CAPACITY_SECONDS;
    return seconds >= ENOUGH_SECONDS && team->order == FIXED_ORDERS;
}

static void wait_a_little(struct team *team) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_NANOSECONDS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&team->idle, &team->lock, &until);
}

static uint64_t sum_bounds(const struct team *team) {
    uint64_t sum = 0;
    for (uint32_t a = 0; a < team->problem->count; a++)
        if (__builtin_add_overflow(sum, team->problem->arenas[a].bound, &sum))
            return UINT64_MAX;
    return sum;
}

static void watch(struct team *team) {
    pthread_mutex_lock(&team->lock);
    while (team->working > 0) {
        wait_a_little(team);
        const double seconds = bfc_now_seconds() - team->started;
        if (enough(team, seconds))
            bfc_store_seq_cst(&team->stop, true);
        const struct solve_progress progress = {sum_bounds(team), sum_peaks(team), seconds};
        if (team->options->progress)
            team->options->progress(&progress);
    }
    pthread_mutex_unlock(&team->lock);
}

static bool create_member(struct team *team, struct member *member) {
    uint32_t boxes = 1, sections = 1, items = 1;
    for (uint32_t a = 0; a < team->problem->count; a++) {
        const struct arena_state *arena = &team->arenas[a];
        boxes = arena->parts.most_boxes > boxes ? arena->parts.most_boxes : boxes;
        sections = arena->parts.most_sections > sections ? arena->parts.most_sections : sections;
        items = arena->whole && arena->arena->count > items ? arena->arena->count : items;
    }
    *member = (struct member){.team = team};
    member->worker.lock = &team->lock;
    member->worker.stop = &team->stop;
    member->worker.seed = team->options->seed;
    member->worker.align = team->problem->align;
    return worker_create(&member->worker, boxes, sections, items);
}

static unsigned count_members(const struct team *team) {
    uint32_t rows = team->problem->lifetimes->count;
    const unsigned most = (unsigned)(MOST_BOXES_AT_ONCE / (rows + (uint64_t)1)) + 1;
    return team->options->threads < most ? team->options->threads : most;
}

/* Runs as many threads as can be had; the calling one works itself when there is none. */
static bool run(struct team *team) {
    const unsigned wanted = count_members(team);
    struct member *members = calloc(wanted, sizeof *members);
    unsigned made = 0, started = 0;
    if (!members)
        return false;
    while (made < wanted && create_member(team, &members[made]))
        made++;
    if (made < wanted)
        worker_free(&members[made].worker);
    team->working = made;
    while (started < made &&
           pthread_create(&members[started].thread, NULL, work, &members[started]) == 0)
        started++;
    pthread_mutex_lock(&team->lock);
    team->working -= made - started;
    pthread_mutex_unlock(&team->lock);
    if (started > 0)
        watch(team);
    for (unsigned i = 0; i < started; i++)
        pthread_join(members[i].thread, NULL);
    for (unsigned i = 0; i < made; i++)
        worker_free(&members[i].worker);
    free(members);
    return started > 0;
}

static bool write_offsets(struct team *team, uint64_t *offsets) {
    const struct problem *problem = team->problem;
    const struct lifetimes *lifetimes = problem->lifetimes;
    uint64_t **items = calloc(problem->count, sizeof *items);
    bool good = items;
    for (uint32_t a = 0; good && a < problem->count; a++) {
        items[a] = malloc(((size_t)problem->arenas[a].count + 1) * sizeof **items);
        good = items[a];
        if (good)
            arena_state_offsets(&team->arenas[a], items[a]);
    }
    for (uint32_t i = 0; good && i < lifetimes->count; i++)
        offsets[i] = items[lifetimes->rows[i].space][problem->item[i]] + problem->place[i];
    for (uint32_t a = 0; items && a < problem->count; a++)
        free(items[a]);
    free(items);
    return good;
}

static bool conclude(struct team *team, uint64_t *offsets, struct solve_result *result,
                     struct plan_error *error) {
    result->bound = sum_bounds(team);
    result->peak = sum_peaks(team);
    result->optimal = all_optimal(team);
    if (result->peak == UINT64_MAX)
        return team->no_memory ? plan_fail_memory(error)
                               : plan_fail(error, "%s: no plan below 2^64 bytes was found",
                                           team->problem->lifetimes->path);
    result->peaks = malloc(team->problem->count * sizeof *result->peaks);
    if (!result->peaks || !write_offsets(team, offsets))
        return plan_fail_memory(error);
    for (uint32_t a = 0; a < team->problem->count; a++)
        result->peaks[a] = team->arenas[a].peak;
    return true;
}

bool solve(const struct problem *problem, const struct solve_options *options, uint64_t *offsets,
           struct solve_result *result, struct plan_error *error) {
    struct team team = {.problem = problem,
                        .options = options,
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .idle = PTHREAD_COND_INITIALIZER,
                        .started = bfc_now_seconds()};
    uint32_t made = 0;
    *result = (struct solve_result){0};
    team.arenas = calloc(problem->count, sizeof *team.arenas);
    bool good = team.arenas;
    while (good && made < problem->count) {
        good = arena_state_create(&team.arenas[made], &problem->arenas[made]);
        made++;
    }
    good = good && run(&team);
    good = good ? conclude(&team, offsets, result, error) : plan_fail_memory(error);
    for (uint32_t a = 0; a < made; a++)
        arena_state_free(&team.arenas[a]);
    free(team.arenas);
    if (!good) {
        free(result->peaks);
        result->peaks = NULL;
    }
    return good;
}
