#include "planner/pack/worker.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/mix.h"
#include "base/numbers.h"
#include "planner/common/random.h"

/* The limit of nodes stays the same for this many long searches of a part, and then rises. The
 * first of these searches use each fixed order of boxes twice, and the others random orders. */
#define SEARCHES_PER_ROUND 40
/* Most searches look for a packing that has the wanted peak (the goal). One in STEP_OFTEN (if
 * worker_improve was called with `stepwise`), or one in STEP_SELDOM, only looks for one whose
 * peak is a quarter of the way from the best peak so far to the goal. */
#define STEP_OFTEN 3
#define STEP_SELDOM 10
/* A job that improves a part either packs it anew by the valley greedy (a restart) or searches for
 * a lower packing (search.h). The first FIRST_RESTARTS jobs are restarts, and later one in
 * RESTART_EVERY. */
#define FIRST_RESTARTS 4
#define RESTART_EVERY 10
/* in parts with more boxes than this, not one in RESTART_EVERY but every second job packs the part
 * anew by the valley greedy */
#define MANY_BOXES 500
/* A job that packs a part anew repeats the valley greedy until about this many boxes have been
 * placed. */
#define RESTART_WORK 60000
/* how many short searches (STRATEGY_WIDE in worker.h) a worker runs at most in one turn */
#define SHORT_SEARCHES 12
/* a short search visits at most this many nodes of the search tree (search.h) for each of its
 * boxes, which suffices to place all boxes if few attempts lead to a dead end */
#define SHORT_NODES_PER_BOX 8
#define FARTHEST                                                                                   \
    0.7 /* this share of the short searches uses the focus (the rule by which a search chooses the \
         * section for its next box) with which earlier searches placed the most boxes; the others \
         * use every focus in turn */
/* this share of the short searches learns from earlier ones: boxes in sections of time in which
 * earlier searches failed are placed earlier */
#define LEARNING 0.7
/* new random weights for the order of the boxes are drawn after this many packings by the valley
 * greedy */
#define MOST_SQUEAKS 40

bool worker_create(struct worker *worker, uint32_t boxes, uint32_t sections, uint32_t items) {
    const size_t n = (size_t)(boxes > items ? boxes : items) + 1;
    worker->valley = valley_create(boxes, sections);
    worker->rank = malloc(n * sizeof *worker->rank);
    worker->worth = malloc(n * sizeof *worker->worth);
    worker->spare = malloc(n * sizeof *worker->spare);
    worker->offsets = malloc(n * sizeof *worker->offsets);
    return worker->valley && worker->rank && worker->worth && worker->spare && worker->offsets;
}

void worker_free(struct worker *worker) {
    valley_destroy(worker->valley);
    search_destroy(worker->search);
    fill_destroy(worker->fill);
    free(worker->rank);
    free(worker->worth);
    free(worker->spare);
    free(worker->offsets);
}

/* Returns the limit for the first packing of a part: so high that any peak is accepted, but low
 * enough that the sum of the limit and the part's base does not overflow. */
static uint64_t most_at_first(const struct part_state *part) {
    return UINT64_MAX - part->part->base;
}

static uint64_t most_allowed(struct worker *worker, const struct part_state *part) {
    pthread_mutex_lock(worker->lock);
    const uint64_t best = part->best;
    pthread_mutex_unlock(worker->lock);
    return best == UINT64_MAX ? most_at_first(part) : best - 1;
}

static void publish_peak(struct worker *worker, struct arena_state *arena, struct part_state *part,
                         uint64_t peak) {
    pthread_mutex_lock(worker->lock);
    if (peak < part->best) {
        part->best = peak;
        memcpy(arena->best + part->part->from, worker->offsets,
               part->part->count * sizeof *worker->offsets);
        arena->stale = true;
    }
    pthread_mutex_unlock(worker->lock);
}

static const struct box *boxes_of(const struct arena_state *arena, const struct part_state *part) {
    return arena->parts.boxes + part->part->from;
}

/* Packs the part once by the valley greedy. Boxes for which worker->worth is higher are placed
 * earlier. */
static struct valley_result pack_part(struct worker *worker, struct arena_state *arena,
                                      struct part_state *part) {
    const uint32_t n = part->part->count;
    struct valley_result result = {0, NO_BOX, false};
    if (!ranks_sort(worker->rank, worker->worth, n, worker->spare)) {
        worker->no_memory = true;
        return result;
    }
    const uint64_t limit = most_allowed(worker, part);
    const bool *stop = limit == most_at_first(part) ? NULL : worker->stop;
    if (stop && bfc_load_relaxed(stop) /* reading an old value of the flag only delays the stop */)
        return result; /* the run was stopped while this thread sorted the boxes */
    result = valley_pack(worker->valley, boxes_of(arena, part), n, part->part->sections,
                         worker->rank, limit, stop, worker->offsets);
    if (result.done)
        publish_peak(worker, arena, part, result.peak);
    return result;
}

void worker_greedy(struct worker *worker, struct arena_state *arena, struct part_state *part,
                   uint32_t order) {
    ranks_weigh(worker->worth, arena->traits + part->part->from, part->part->count,
                fixed_orders[order]);
    pack_part(worker, arena, part);
}

static void draw_worths(struct worker *worker, const struct traits *traits, uint32_t n,
                        uint64_t *random) {
    ranks_weigh(worker->worth, traits, n, ranks_draw(random));
    ranks_disturb(worker->worth, n, random);
}

static void restart_part(struct worker *worker, struct arena_state *arena, struct part_state *part,
                         uint64_t goal, uint64_t *random) {
    const uint32_t n = part->part->count;
    uint64_t work = 0;
    while (work < RESTART_WORK) {
        draw_worths(worker, arena->traits + part->part->from, n, random);
        const double spread = ranks_spread(worker->worth, n);
        for (int i = 0; i < MOST_SQUEAKS && work < RESTART_WORK; i++) {
            if (bfc_load_relaxed(worker->stop) /* reading an old value only delays the stop */)
                return;
            const struct valley_result result = pack_part(worker, arena, part);
            work += n;
            if (worker->no_memory || (result.done && result.peak <= goal))
                return;
            if (!result.done && result.failed != NO_BOX)
                worker->worth[result.failed] += spread * 0.3 * random_unit(random);
        }
    }
}

struct plan_of_search {
    uint64_t capacity;
    uint64_t nodes;
    /* number of a long search, from 0, among the SEARCHES_PER_ROUND that have the same limit of
     * nodes */
    uint32_t order;
    enum search_focus focus;
    uint32_t effort;
};

/* Returns the capacity that a search tries to reach: the goal, which is the wanted peak, or in some
 * searches a peak a quarter of the way from the best one to it. The caller holds the lock. */
static uint64_t capacity_of(const struct worker *worker, const struct part_state *part,
                            uint64_t goal, bool stepwise, uint32_t order) {
    const uint32_t every = stepwise ? STEP_OFTEN : STEP_SELDOM;
    const uint64_t step = (part->best - goal) / 4;
    const bool steps = order % every == every - 1;
    const uint64_t capacity = steps ? part->best - bfc_max(step, worker->align) : goal;
    return bfc_max(capacity, part->proved);
}

static struct plan_of_search next_deep(struct worker *worker, struct part_state *part,
                                       uint64_t goal, bool stepwise) {
    pthread_mutex_lock(worker->lock);
    const uint32_t round = part->next_search / SEARCHES_PER_ROUND;
    struct plan_of_search plan = {.nodes = part->node_limit,
                                  .order = part->next_search % SEARCHES_PER_ROUND,
                                  .focus =
                                      (part->next_search % 2 + 2 * (round % 2)) % SEARCH_FOCUSES};
    plan.effort = (plan.order / 2 + round) % SEARCH_EFFORTS;
    plan.capacity = capacity_of(worker, part, goal, stepwise, plan.order);
    if (++part->next_search % SEARCHES_PER_ROUND == 0)
        part->node_limit += part->node_limit / 2;
    pthread_mutex_unlock(worker->lock);
    return plan;
}

static struct plan_of_search next_wide(struct worker *worker, struct part_state *part,
                                       uint64_t goal, bool stepwise, uint32_t order) {
    pthread_mutex_lock(worker->lock);
    const uint64_t capacity = capacity_of(worker, part, goal, stepwise, order);
    pthread_mutex_unlock(worker->lock);
    return (struct plan_of_search){.capacity = capacity,
                                   .nodes = SHORT_NODES_PER_BOX * (uint64_t)part->part->count};
}

static void note_exhausted(struct worker *worker, struct part_state *part, uint64_t capacity) {
    const uint64_t next = capacity - capacity % worker->align + worker->align;
    pthread_mutex_lock(worker->lock);
    part->proved = bfc_max(part->proved, next);
    pthread_mutex_unlock(worker->lock);
}

static uint64_t peak_of(const struct box *boxes, const uint64_t *offsets, uint32_t n) {
    uint64_t peak = 0;
    for (uint32_t i = 0; i < n; i++)
        peak = bfc_max(peak, offsets[i] + boxes[i].size);
    return peak;
}

/* Makes the working memory of searches when the worker first needs it. If the worker's last search
 * was of another part, forgets the counts of that part (search_blame and worker->reach). False: the
 * host has no memory. */
static bool have_search(struct worker *worker, const struct part_state *part) {
    if (!worker->search)
        worker->search = search_create();
    if (worker->search && worker->searched != part) {
        search_forget(worker->search);
        memset(worker->reach, 0, sizeof worker->reach);
    }
    worker->searched = part;
    return worker->search;
}

/* Runs one search, which tries boxes of high worker->worth first. False: it neither found a packing
 * nor proved that there is none. */
static bool search_part(struct worker *worker, struct arena_state *arena, struct part_state *part,
                        const struct plan_of_search *plan) {
    const uint32_t n = part->part->count;
    if (!have_search(worker, part) || !ranks_sort(worker->rank, worker->worth, n, worker->spare)) {
        worker->no_memory = true;
        return false;
    }
    const enum search_result result = search_run(
        worker->search, boxes_of(arena, part), n, part->part->sections, worker->rank, plan->focus,
        plan->effort, plan->capacity, plan->nodes, worker->stop, worker->offsets);
    worker->no_memory = worker->no_memory || result == SEARCH_NO_MEMORY;
    if (result == SEARCH_EXHAUSTED)
        note_exhausted(worker, part, plan->capacity);
    if (result == SEARCH_FOUND)
        publish_peak(worker, arena, part, peak_of(boxes_of(arena, part), worker->offsets, n));
    return result == SEARCH_FOUND || result == SEARCH_EXHAUSTED;
}

/* Runs the part's next long search: with the part's present limit of nodes, in a fixed or random
 * order. */
static void search_deep(struct worker *worker, struct arena_state *arena, struct part_state *part,
                        uint64_t goal, bool stepwise, uint64_t *random) {
    const struct plan_of_search plan = next_deep(worker, part, goal, stepwise);
    const struct traits *traits = arena->traits + part->part->from;
    if (plan.order / 2 < FIXED_ORDERS)
        ranks_weigh(worker->worth, traits, part->part->count, fixed_orders[plan.order / 2]);
    else
        draw_worths(worker, traits, part->part->count, random);
    search_part(worker, arena, part, &plan);
}

static double mean_of(struct reach reach) {
    return (double)reach.boxes / (double)(reach.searches + 1);
}

static void note_reach(struct worker *worker, enum search_focus focus) {
    worker->reach[focus].boxes += search_reached(worker->search);
    worker->reach[focus].searches++;
}

/* Chooses the focus (enum search_focus) of a short search. Mostly it is the one with which short
 * searches of this part placed the most boxes on average, because a search with this focus is the
 * likeliest to find a packing. In the other searches every focus has its turn. */
static enum search_focus choose_focus(const struct worker *worker, uint32_t attempt,
                                      uint64_t *random) {
    enum search_focus best = SEARCH_LOWEST;
    if (random_unit(random) >= FARTHEST)
        return (enum search_focus)(attempt % SEARCH_FOCUSES);
    for (uint32_t f = 0; f < SEARCH_FOCUSES; f++)
        if (mean_of(worker->reach[f]) > mean_of(worker->reach[best]))
            best = (enum search_focus)f;
    return best;
}

/*
 * Runs short searches in random orders of the boxes. In most of these orders, the boxes of sections
 * in which earlier searches failed come earlier. The time that a search takes varies so much that
 * it is soon better to begin a new search than to continue an old one (Gomes, Selman and Kautz,
 * AAAI 1998).
 */
static void search_wide(struct worker *worker, struct arena_state *arena, struct part_state *part,
                        uint64_t goal, bool stepwise, uint64_t *random) {
    const uint32_t n = part->part->count;
    bool over = false;
    for (uint32_t i = 0; i < SHORT_SEARCHES && !over; i++) {
        struct plan_of_search plan = next_wide(worker, part, goal, stepwise, i);
        const bool learns = random_unit(random) < LEARNING;
        const uint32_t *blame = worker->searched == part ? search_blame(worker->search) : NULL;
        draw_worths(worker, arena->traits + part->part->from, n, random);
        if (learns && blame)
            ranks_learn(worker->worth, boxes_of(arena, part), n, blame, random_unit(random));
        plan.focus = choose_focus(worker, i, random);
        plan.effort = i % SEARCH_EFFORTS;
        over = search_part(worker, arena, part, &plan) || worker->no_memory ||
               bfc_load_relaxed(worker->stop) /* reading an old value only delays the stop */;
        if (!worker->no_memory)
            note_reach(worker, plan.focus);
    }
}

static bool wants_restart(uint32_t boxes, uint32_t attempt) {
    const uint32_t every = boxes > MANY_BOXES ? 2 : RESTART_EVERY;
    return boxes > SEARCH_MOST_BOXES || attempt < FIRST_RESTARTS || attempt % every == 0;
}

void worker_improve(struct worker *worker, struct arena_state *arena, struct part_state *part,
                    uint64_t goal, bool stepwise) {
    pthread_mutex_lock(worker->lock);
    const uint32_t attempt = part->improvements++;
    pthread_mutex_unlock(worker->lock);
    uint64_t random = bfc_mix_join(worker->seed, (uint64_t)part->part->from << 32 | attempt);
    const bool wide = worker->strategy == STRATEGY_WIDE ||
                      (worker->strategy == STRATEGY_BOTH && attempt % 2 == 0);
    if (wants_restart(part->part->count, attempt))
        restart_part(worker, arena, part, goal, &random);
    else if (wide)
        search_wide(worker, arena, part, goal, stepwise, &random);
    else
        search_deep(worker, arena, part, goal, stepwise, &random);
}

static void publish_fill(struct worker *worker, struct arena_state *arena, uint64_t peak) {
    pthread_mutex_lock(worker->lock);
    if (peak < arena->filled_peak) {
        arena->filled_peak = peak;
        memcpy(arena->filled, worker->offsets, arena->arena->count * sizeof *worker->offsets);
        arena->stale = true;
    }
    pthread_mutex_unlock(worker->lock);
}

static bool have_fill(struct worker *worker, const struct arena *arena) {
    if (worker->fill_arena != arena) {
        fill_destroy(worker->fill);
        worker->fill = fill_create(arena);
        worker->fill_arena = !worker->fill ? NULL : arena;
    }
    return worker->fill;
}

void worker_fill(struct worker *worker, struct arena_state *arena) {
    const uint32_t n = arena->arena->count;
    pthread_mutex_lock(worker->lock);
    const uint32_t attempt = arena->fills++;
    const uint64_t limit = arena->filled_peak == UINT64_MAX ? UINT64_MAX : arena->filled_peak - 1;
    pthread_mutex_unlock(worker->lock);
    uint64_t random = bfc_mix_join(worker->seed, ~(uint64_t)attempt);
    if (attempt < 2 * FIXED_ORDERS)
        ranks_weigh(worker->worth, arena->whole, n, fixed_orders[attempt / 2]);
    else
        draw_worths(worker, arena->whole, n, &random);
    if (!have_fill(worker, arena->arena) ||
        !ranks_sort(worker->rank, worker->worth, n, worker->spare)) {
        worker->no_memory = true;
        return;
    }
    const struct fill_result result =
        fill_pack(worker->fill, worker->rank, attempt % 2 == 1, limit, worker->offsets);
    worker->no_memory = worker->no_memory || result.no_memory;
    if (result.done)
        publish_fill(worker, arena, result.peak);
}
