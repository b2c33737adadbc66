#include "planner/pack/portfolio.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/numbers.h"
#include "planner/common/watch.h"

/* if the user gives neither a time limit nor a capacity, a run takes at least this long, unless no
 * better plan is possible */
#define ENOUGH_SECONDS 2.5
/* if the user gives a capacity but no time limit, a run ends after this time even if no plan fits
 * into the capacity yet */
#define CAPACITY_SECONDS 60
/* when a plan fits into the given capacity, a run still goes on until this time, for a better
 * plan */
#define GRACE_SECONDS 1.0

struct job {
    enum { JOB_NONE, JOB_GREEDY, JOB_IMPROVE, JOB_FILL } kind;
    struct arena_state *arena;
    struct part_state *part;
    uint32_t order;
    uint64_t goal;
    bool stepwise;
};

uint64_t portfolio_peak(struct portfolio *portfolio) {
    uint64_t sum = 0;
    for (uint32_t a = 0; a < portfolio->problem->count; a++) {
        arena_state_update(&portfolio->arenas[a]);
        sum = bfc_add_saturating(sum, portfolio->arenas[a].peak);
    }
    return sum;
}

static bool all_optimal(struct portfolio *portfolio) {
    for (uint32_t a = 0; a < portfolio->problem->count; a++)
        if (!arena_state_optimal(&portfolio->arenas[a]))
            return false;
    return true;
}

/* Returns the peak that is wanted for a packing of the part. A part with this peak ends at the
 * arena's lower bound, or at the capacity that the user has given if that is higher. The result is
 * at least part->proved, because it is proved that no packing has a lower peak than that. */
static uint64_t goal_of(const struct portfolio *portfolio, const struct arena_state *arena,
                        const struct part_state *part) {
    const uint64_t base = part->part->base;
    uint64_t whole = arena->arena->bound;
    if (portfolio->problem->count == 1 && portfolio->options->capacity != UINT64_MAX &&
        portfolio->options->capacity > whole && portfolio->options->capacity < arena->peak)
        whole = portfolio->options->capacity;
    const uint64_t goal = bfc_subtract_saturating(whole, base);
    return bfc_max(goal, part->proved);
}

static bool needs_greedy(const struct arena_state *arena, const struct part_state *part) {
    return part->best > part->proved &&
           (part->best == UINT64_MAX || part->part->base + part->best > arena->arena->bound);
}

static void advance_round(struct portfolio *portfolio) {
    const struct arena_state *arena = &portfolio->arenas[portfolio->arena];
    if (++portfolio->part <= arena->parts.count)
        return;
    portfolio->part = 0;
    if (++portfolio->arena < portfolio->problem->count)
        return;
    portfolio->arena = 0;
    portfolio->order++;
}

/* Chooses the next job of the first round, in which each part is packed once in each fixed order of
 * boxes (ranks.h). All parts are packed in one order before the next order is used, so that soon
 * every part has a packing. */
static struct job next_greedy(struct portfolio *portfolio) {
    while (portfolio->order < FIXED_ORDERS) {
        struct arena_state *arena = &portfolio->arenas[portfolio->arena];
        const uint32_t order = portfolio->order;
        const uint32_t part = portfolio->part;
        advance_round(portfolio);
        if (part < arena->parts.count && needs_greedy(arena, &arena->states[part]))
            return (struct job){JOB_GREEDY, arena, &arena->states[part], order, 0, false};
        const bool first = order == 0 || arena->filled_peak > arena->arena->bound;
        if (part == arena->parts.count && arena->whole && arena->arena->count > 0 && first)
            return (struct job){JOB_FILL, arena, NULL, order, 0, false};
    }
    return (struct job){.kind = JOB_NONE};
}

/* Chooses the next job after the first round. The arenas take turns. In an arena the job either
 * improves the part that ends highest or packs the whole arena by hole filling (fill.h). */
static struct job next_improvement(struct portfolio *portfolio) {
    for (uint32_t tried = 0; tried < portfolio->problem->count; tried++) {
        struct arena_state *arena =
            &portfolio->arenas[portfolio->rotation++ % portfolio->problem->count];
        arena_state_update(arena);
        if (arena_state_optimal(arena))
            continue;
        struct part_state *part = arena_state_worst(arena);
        if (arena->whole && (!part || portfolio->rotation % 2 == 0))
            return (struct job){JOB_FILL, arena, NULL, 0, 0, false};
        if (part)
            return (struct job){JOB_IMPROVE,
                                arena,
                                part,
                                0,
                                goal_of(portfolio, arena, part),
                                portfolio->options->capacity == UINT64_MAX};
    }
    return (struct job){.kind = JOB_NONE};
}

static struct job next_job(struct portfolio *portfolio) {
    struct job job = {.kind = JOB_NONE};
    pthread_mutex_lock(&portfolio->lock);
    /* A relaxed load suffices: `stop` is only written under the lock, which this thread holds. */
    const bool stop = bfc_load_relaxed(&portfolio->stop);
    if (!stop || portfolio->order == 0)
        job = next_greedy(portfolio);
    if (job.kind != JOB_NONE && stop && job.order > 0)
        job.kind = JOB_NONE;
    else if (job.kind == JOB_NONE && !stop)
        job = next_improvement(portfolio);
    pthread_mutex_unlock(&portfolio->lock);
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

bool portfolio_work(struct portfolio *portfolio, struct worker *worker) {
    const struct job job = next_job(portfolio);
    if (job.kind != JOB_NONE && !worker->no_memory)
        do_job(worker, &job);
    return job.kind != JOB_NONE && !worker->no_memory;
}

bool portfolio_is_enough(struct portfolio *portfolio, double seconds) {
    const struct solve_options *options = portfolio->options;
    if (bfc_load_seq_cst(options->interrupted) ||
        (options->seconds >= 0 && seconds >= options->seconds))
        return true;
    const uint64_t peak = portfolio_peak(portfolio);
    if ((double)peak <= options->enough * (double)problem_bound(portfolio->problem))
        return true;
    const bool given = options->capacity != UINT64_MAX;
    const bool reached = peak <= options->capacity;
    if (given && reached)
        return seconds >= GRACE_SECONDS;
    if (options->seconds >= 0)
        return false;
    if (given)
        return seconds >= CAPACITY_SECONDS;
    return seconds >= ENOUGH_SECONDS && portfolio->order == FIXED_ORDERS;
}

double portfolio_share(struct portfolio *portfolio, double seconds) {
    const struct solve_options *options = portfolio->options;
    const bool given = options->capacity != UINT64_MAX;
    const double most = options->seconds >= 0 ? options->seconds
                        : given               ? CAPACITY_SECONDS
                                              : ENOUGH_SECONDS;
    const double time = seconds < most ? seconds / most : 1;
    const double orders = watch_share();
    const double first = orders * FIXED_ORDERS / options->threads;
    if (portfolio_peak(portfolio) == UINT64_MAX)
        return first < 1 ? first : 1;
    return options->seconds >= 0 || given || time < orders ? time : orders;
}

static bool write_offsets(struct portfolio *portfolio, uint64_t *offsets) {
    const struct problem *problem = portfolio->problem;
    const struct lifetimes *lifetimes = problem->lifetimes;
    uint64_t **items = calloc(problem->count, sizeof *items);
    bool good = items;
    for (uint32_t a = 0; good && a < problem->count; a++) {
        items[a] = malloc(((size_t)problem->arenas[a].count + 1) * sizeof **items);
        good = items[a];
        if (good)
            arena_state_offsets(&portfolio->arenas[a], items[a]);
    }
    for (uint32_t i = 0; good && i < lifetimes->count; i++)
        offsets[i] = items[lifetimes->rows[i].space][problem->item[i]] + problem->place[i];
    for (uint32_t a = 0; items && a < problem->count; a++)
        free(items[a]);
    free(items);
    return good;
}

static bool write_result(struct portfolio *portfolio, uint64_t *offsets,
                         struct solve_result *result, struct plan_error *error) {
    *result = (struct solve_result){.bound = problem_bound(portfolio->problem),
                                    .peak = portfolio_peak(portfolio),
                                    .optimal = all_optimal(portfolio)};
    if (result->peak == UINT64_MAX)
        return portfolio->no_memory ? plan_fail_memory(error)
                                    : plan_fail(error, "%s: no plan below 2^64 bytes was found",
                                                portfolio->problem->lifetimes->path);
    result->peaks = malloc(portfolio->problem->count * sizeof *result->peaks);
    if (!result->peaks || !write_offsets(portfolio, offsets))
        return plan_fail_memory(error);
    for (uint32_t a = 0; a < portfolio->problem->count; a++)
        result->peaks[a] = portfolio->arenas[a].peak;
    return true;
}

bool portfolio_conclude(struct portfolio *portfolio, bool ran, uint64_t *offsets,
                        struct solve_result *result, struct plan_error *error) {
    *result = (struct solve_result){0};
    const bool good =
        ran ? write_result(portfolio, offsets, result, error) : plan_fail_memory(error);
    for (uint32_t a = 0; a < portfolio->made; a++)
        arena_state_free(&portfolio->arenas[a]);
    free(portfolio->arenas);
    if (!good) {
        free(result->peaks);
        result->peaks = NULL;
    }
    return good;
}

bool portfolio_create_worker(struct portfolio *portfolio, struct worker *worker) {
    uint32_t boxes = 1, sections = 1, items = 1;
    for (uint32_t a = 0; a < portfolio->problem->count; a++) {
        const struct arena_state *arena = &portfolio->arenas[a];
        boxes = arena->parts.most_boxes > boxes ? arena->parts.most_boxes : boxes;
        sections = arena->parts.most_sections > sections ? arena->parts.most_sections : sections;
        items = arena->whole && arena->arena->count > items ? arena->arena->count : items;
    }
    *worker = (struct worker){.lock = &portfolio->lock,
                              .stop = &portfolio->stop,
                              .seed = portfolio->options->seed,
                              .align = portfolio->problem->align};
    return worker_create(worker, boxes, sections, items);
}

bool portfolio_create(struct portfolio *portfolio, const struct problem *problem,
                      const struct solve_options *options) {
    *portfolio = (struct portfolio){.problem = problem,
                                    .options = options,
                                    .lock = PTHREAD_MUTEX_INITIALIZER,
                                    .started = bfc_now_seconds()};
    portfolio->arenas = calloc(problem->count, sizeof *portfolio->arenas);
    bool good = portfolio->arenas;
    while (good && portfolio->made < problem->count) {
        good = arena_state_create(&portfolio->arenas[portfolio->made],
                                  &problem->arenas[portfolio->made]);
        portfolio->made++;
    }
    return good;
}
